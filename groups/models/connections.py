"""Programs that people have connected over OAuth."""

from django.conf import settings
from django.db import models

from common.models import Created

from .tokens import Token


class Connection(Created):
    """What somebody allowed a program: a token, in one organization and with scopes, that the program never
    sees. Its OAuth tokens count for as long as this one does, and reach no further.
    """

    application = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token = models.OneToOneField(Token, on_delete=models.CASCADE, related_name="connection")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["application", "user"], name="connection_unique"),
        ]

    def __str__(self) -> str:
        return str(self.token)
