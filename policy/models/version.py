"""How caches of the rules learn that they are old."""

from django.db import models


class PolicyVersion(models.Model):
    """A number for each organization that grows, by trigger, with every change of its policy."""

    organization = models.OneToOneField("groups.Organization", on_delete=models.CASCADE, primary_key=True)
    version = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.organization_id} at {self.version}"
