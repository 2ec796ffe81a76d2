"""An organization's own keys of model providers, and which models have answered when somebody tried them."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Q

from common import ids, sealed
from common.models import Created, store_also
from common.outbound import OutboundError, check

from .accounts import NOT_RESOLVED
from .mcp import origin

MAX_KEY = 1000


class ModelProvider(models.TextChoices):
    OPENAI = "openai", "OpenAI, or a server that speaks like it"
    OLLAMA = "ollama", "Ollama"
    COMPATIBLE = "compatible", "A compatible server"
    ANTHROPIC = "anthropic", "Anthropic"
    GOOGLE = "google", "Google"


ADDRESSED = (ModelProvider.OPENAI, ModelProvider.OLLAMA, ModelProvider.COMPATIBLE)  # may stand elsewhere


class ModelKey(Created):
    """How an organization's own runs ask a provider, in place of what the environment says.

    Nothing is mixed: with an own address the environment's key is not sent there. An empty address is the one
    that the environment names, or the provider's. The key is encrypted and never shown again.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.model_key_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    provider = models.CharField(max_length=20, choices=ModelProvider.choices)
    base_url = models.CharField(
        "address",
        max_length=2000,
        blank=True,
        help_text="Where its server is, such as https://models.example.org/v1. Empty: the usual place. "
        "With another address a new key has to be entered.",
    )
    sealed_key = models.TextField(blank=True, editable=False)

    class Meta:
        verbose_name = "model key"
        permissions = [("try_modelkey", "Can try a model")]
        constraints = [
            models.UniqueConstraint(fields=["organization", "provider"], name="model_key_unique"),
            models.CheckConstraint(condition=Q(provider__in=ModelProvider.values), name="model_key_provider"),
        ]

    def __str__(self) -> str:
        return str(self.provider)

    def keep_key(self, key: str) -> None:
        """Replace the key, or with "" remove it. Raises ValidationError for what no server takes as one."""
        key = key.strip()
        if len(key) > MAX_KEY or not all("!" <= character <= "~" for character in key):
            raise ValidationError("A key has no spaces, line breaks or letters beyond ASCII.")
        self.sealed_key = sealed.seal(key) if key else ""

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it. At another origin (scheme, host, port) it is another server: the key that was meant for
        the old one goes, in the same transaction.
        """
        with transaction.atomic():
            before = None
            if not self._state.adding:
                before = ModelKey.objects.select_for_update(no_key=True).filter(pk=self.pk).first()
            if before is not None and origin(before.base_url) != origin(self.base_url):
                if self.sealed_key == before.sealed_key:  # none was given for the new address
                    self.sealed_key = ""
                store_also(kwargs, "sealed_key")
            super().save(*args, **kwargs)

    def clean(self) -> None:
        """Raises ValidationError for an address Deputy will not ask."""
        if not self.base_url:
            return
        if self.provider not in ADDRESSED:
            raise ValidationError({"base_url": "This provider is asked at its own address only."})
        try:
            check(self.base_url, allow_private=frozenset(settings.MODEL_ALLOW))
        except OutboundError as error:
            if error.code != NOT_RESOLVED:
                raise ValidationError({"base_url": f"This address is refused: {error.message}."}) from None


class TriedModel(models.Model):
    """What came of it when somebody last tried a model for an organization. `error` is empty where it
    answered, otherwise the error's code.
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    model = models.CharField(max_length=200)
    error = models.CharField(max_length=40, blank=True)
    said = models.CharField(max_length=300)
    milliseconds = models.PositiveIntegerField()
    tried_at = models.DateTimeField()
    tried_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["organization", "model"], name="tried_model_unique")]

    def __str__(self) -> str:
        return self.model
