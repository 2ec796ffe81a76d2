"""Cells: installations that share the organizations of one operator (docs/operating.md, "Cells")."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from common import ids, sealed
from common.models import Created

ACCOUNTS = 10_000_000  # ids of accounts that each cell has for its own
MOST_CELLS = 200  # as many fit into the ids that Django's accounts have


class Cell(Created):
    """What this installation is among its cells. One row, or none where it stands alone.

    Accounts that are made here have ids from `number` * ACCOUNTS on, so that an account keeps its id wherever
    its organizations go. `check_text` is sealed: a cell with another SECRET_KEY cannot read it.
    """

    number = models.PositiveSmallIntegerField(primary_key=True)
    address = models.CharField(max_length=200)
    check_text = models.TextField()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(number__lt=MOST_CELLS), name="cell_number")]

    def __str__(self) -> str:
        return self.address

    def keep_check(self) -> None:
        """Seal what shows which SECRET_KEY this cell has."""
        self.check_text = sealed.seal(self.address)


class OtherCell(models.Model):
    """Another cell, as far as this one has been told: tokens that are issued there name its number."""

    number = models.PositiveSmallIntegerField(primary_key=True)
    address = models.CharField(max_length=200)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.address


class MoveState(models.TextChoices):
    LEAVING = "leaving", "Its calls that act outside are brought to an end"
    FROZEN = "frozen", "Nothing of it is written for some seconds"
    MOVED = "moved", "It is in another cell"
    ARRIVING = "arriving", "It is not here yet"


class Move(models.Model):
    """An organization that is on its way, or has gone. Without such a row it is here.

    LEAVING and FROZEN end by themselves at `until`. The row outlives the organization's others.
    """

    organization_id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH)
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=MoveState.choices)
    address = models.CharField(max_length=200)
    until = models.DateTimeField(null=True)
    since = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(state__in=MoveState.values), name="move_state")]

    def __str__(self) -> str:
        return f"{self.name} {self.state}"


class MovedToken(models.Model):
    """The hash of a token whose organization has gone: it opens nothing here and says where to ask."""

    secret_hash = models.CharField(primary_key=True, max_length=64)
    move = models.ForeignKey(Move, on_delete=models.CASCADE, related_name="tokens")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.move_id)


class MovedPerson(models.Model):
    """An account of somebody whose organization has gone."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    move = models.ForeignKey(Move, on_delete=models.CASCADE, related_name="people")

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "move"], name="moved_person_once")]

    def __str__(self) -> str:
        return str(self.move_id)
