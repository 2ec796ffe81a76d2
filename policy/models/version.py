"""How caches of the rules learn that they are old."""

from django.db import models


class PolicyVersionManager(models.Manager["PolicyVersion"]):
    def of(self, organization_id: str) -> int:
        """The organization's version now; 0 where nothing has been arranged yet."""
        return self.filter(organization_id=organization_id).values_list("version", flat=True).first() or 0


class PolicyVersion(models.Model):
    """A number for each organization that grows, by trigger, with every change of its policy."""

    organization = models.OneToOneField("groups.Organization", on_delete=models.CASCADE, primary_key=True)
    version = models.BigIntegerField(default=0)

    objects = PolicyVersionManager()

    def __str__(self) -> str:
        return f"{self.organization_id} at {self.version}"
