"""How caches of the rules learn that they are old."""

from collections.abc import Callable
from typing import TypeVar

from django.db import models

Read = TypeVar("Read")


class PolicyVersionManager(models.Manager["PolicyVersion"]):
    def of(self, organization_id: str) -> int:
        """The organization's version now; 0 where nothing has been arranged yet."""
        return self.filter(organization_id=organization_id).values_list("version", flat=True).first() or 0

    def steady(self, organization_id: str, version: int, read: Callable[[], Read]) -> tuple[int, Read]:
        """What `read` gives, and the version it is of. It takes several statements, each of which sees what
        has been committed by then: where the version has moved meanwhile they may have seen some of a change
        and not the rest, such as a role that may more and not yet the rule that forbids it. Then it is read
        again.
        """
        while True:
            found = read()
            now = self.of(organization_id)
            if now == version:
                return version, found
            version = now


class PolicyVersion(models.Model):
    """A number for each organization that grows, by trigger, with every change of its policy."""

    organization = models.OneToOneField("groups.Organization", on_delete=models.CASCADE, primary_key=True)
    version = models.BigIntegerField(default=0)

    objects = PolicyVersionManager()

    def __str__(self) -> str:
        return f"{self.organization_id} at {self.version}"
