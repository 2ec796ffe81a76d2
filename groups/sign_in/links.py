"""Links to a new password, which end with any change of the account's addresses."""

from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth.tokens import PasswordResetTokenGenerator


class ResetLinks(PasswordResetTokenGenerator):
    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        """An address that is given up and typed in again is another row: nobody has shown it anew."""
        rows = EmailAddress.objects.filter(user=user).order_by("pk").values_list("pk", "email", "verified")
        return f"{super()._make_hash_value(user, timestamp)} {list(rows)}"
