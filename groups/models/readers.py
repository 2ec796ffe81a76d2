"""In which language people read what Deputy sends them."""

from django.conf import settings
from django.db import models


class Reader(models.Model):
    """A person's language: that of the pages where they last signed in, or chose one."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="reader"
    )
    language = models.CharField(max_length=10)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user_id}: {self.language}"
