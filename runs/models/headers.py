"""Headers that go with every request to somebody's server: their values are secrets."""

import json

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from common import sealed
from common.outbound import OutboundError, check_headers


class WithHeaders(models.Model):
    """Something that is asked with headers of its own: encrypted, never shown again but for their names."""

    sealed_headers = models.TextField(blank=True, editable=False)
    header_names = ArrayField(models.CharField(max_length=200), default=list, blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request. Raises sealed.Unreadable."""
        found: dict[str, str] = json.loads(sealed.unseal(self.sealed_headers)) if self.sealed_headers else {}
        return found

    def keep_headers(self, headers: dict[str, str]) -> None:
        """Replace the headers. Raises ValidationError for what cannot be sent."""
        try:
            check_headers(headers)
        except OutboundError as error:
            raise ValidationError(f"These headers cannot be sent: {error.message}.") from None
        self.sealed_headers = sealed.seal(json.dumps(headers)) if headers else ""
        self.header_names = sorted(headers)
