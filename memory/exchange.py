"""Knowledge in and out as JSON Lines: one object a line, checked in a dry run before anything is written."""

import json
from collections.abc import Callable
from typing import Any

import tablib
from django.core.exceptions import ValidationError
from import_export import fields, resources
from import_export.formats.base_formats import Format

from common import redact
from common.canonical import normalise
from common.times import instant
from groups.actors import Actor
from groups.models import Project
from memory import curate
from memory.errors import MemoryRefused
from memory.models import DepositedKnowledge, Memory, MemoryType
from memory.scope import Scope
from memory.write import BY_PROGRAM, LINEAGE, memory_write
from policy.authority import About, NotAllowed, Verb, may

MOST_ROWS = 2000  # of a file: each is written, twice, while a web process waits
COLUMNS = ("id", "organization", "project", "content", "metadata", "importance", "expires_at", "status")


class JSONL(Format):
    """JSON Lines for django-import-export."""

    def __init__(self, encoding: str | None = None) -> None:
        self.encoding = encoding

    def get_title(self) -> str:
        return "jsonl"

    def is_binary(self) -> bool:
        return False

    def get_read_mode(self) -> str:
        return "r"

    def get_extension(self) -> str:
        return "jsonl"

    def get_content_type(self) -> str:
        return "application/jsonl"

    def can_import(self) -> bool:
        return True

    def can_export(self) -> bool:
        return True

    def create_dataset(self, in_stream: str, **kwargs: Any) -> tablib.Dataset:
        dataset = tablib.Dataset(headers=COLUMNS)
        for number, line in enumerate(in_stream.split("\n"), 1):  # a text may hold other ends of lines
            if not line.strip():
                continue
            if len(dataset) == MOST_ROWS:
                raise ValueError(f"line {number}: a file has at most {MOST_ROWS} rows; divide it")
            try:
                row = normalise(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number}: not an object")
            if unknown := row.keys() - set(COLUMNS):
                raise ValueError(f"line {number}: unknown field {sorted(unknown)[0]!r}")
            dataset.append([row.get(column) for column in COLUMNS])
        return dataset

    def export_data(self, dataset: tablib.Dataset, **kwargs: Any) -> str:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in dataset.dict)


OTHERS_WORDS = frozenset({"source_run_id", BY_PROGRAM})  # lineage of what nobody has curated
ActorAt = Callable[[str], Actor]  # whoever imports, as a member of an organization


class KnowledgeResource(resources.ModelResource):
    """A line with an id of known knowledge edits it, any other adds. `status` and the lineage are shown
    when exported and never taken from a file."""

    content = fields.Field()
    organization = fields.Field()
    project = fields.Field()
    metadata = fields.Field()
    expires_at = fields.Field()
    importance = fields.Field()

    class Meta:
        model = DepositedKnowledge
        fields = COLUMNS
        export_order = COLUMNS
        use_transactions = True
        skip_diff = True

    def __init__(self, user: Any = None, actor_at: ActorAt | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.user, self.actor_at = user, actor_at

    def get_queryset(self) -> Any:
        return DepositedKnowledge.objects.visible_to(self.user)

    def dehydrate_organization(self, memory: Memory) -> str:
        return memory.organization.slug

    def dehydrate_project(self, memory: Memory) -> str | None:
        return memory.project.slug if memory.project else None

    def dehydrate_content(self, memory: Memory) -> str:
        return redact.shown(memory.content)

    def dehydrate_metadata(self, memory: Memory) -> Any:
        return redact.masked(memory.metadata)

    def dehydrate_importance(self, memory: Memory) -> float:
        return memory.importance

    def dehydrate_expires_at(self, memory: Memory) -> str | None:
        return memory.expires_at.isoformat() if memory.expires_at else None

    def import_instance(self, instance: Memory, row: dict[str, Any], **kwargs: Any) -> None:
        """Nothing is set here: save_instance goes through the same doors as everybody else."""

    def validate_instance(self, *args: Any, **kwargs: Any) -> None:
        """Checked where it is written."""

    def after_import_row(self, row: dict[str, Any], row_result: Any, **kwargs: Any) -> None:
        """The dry run shows the line as it is: there is no diff of what nothing is set on."""
        row_result.diff = ["" if row[name] is None else str(row[name]) for name in COLUMNS]

    def save_instance(self, instance: Memory, is_create: bool, row: dict[str, Any], **kwargs: Any) -> None:
        try:
            self._write(instance, is_create, row)
        except (MemoryRefused, NotAllowed) as refused:
            raise ValidationError(str(refused)) from None

    def _actor(self, organization_id: str) -> Actor:
        """Whoever imports, as a member of the organization. Raises NotAllowed where nobody is known."""
        if self.actor_at is None:
            raise NotAllowed("NOT_ENTITLED", "Nobody is known who imports this.")
        return self.actor_at(organization_id)

    def _write(self, instance: Memory, is_create: bool, row: dict[str, Any]) -> None:
        given = row["metadata"] or {}
        if not isinstance(given, dict):
            raise MemoryRefused("invalid_metadata", "metadata is not an object")
        changes: dict[str, Any] = {
            "metadata": {key: value for key, value in given.items() if key not in LINEAGE},
            "importance": 0.5 if row["importance"] is None else row["importance"],
            "expires_at": _time(row["expires_at"]),
        }
        if not is_create:
            curate.edit(instance.id, self._actor(instance.organization_id), content=row["content"], **changes)
            return
        scope = self._scope(row)
        may(self._actor(scope.organization_id), Verb.CURATE, About(scope.organization_id, scope.project_id))
        outside = bool(OTHERS_WORDS & given.keys())
        written = memory_write(row["content"], scope, type=MemoryType.ARCHIVAL, outside=outside, **changes)
        instance.id = written.id

    def _scope(self, row: dict[str, Any]) -> Scope:
        found = Project.objects.select_related("organization").filter(
            organization__slug=row["organization"], slug=row["project"]
        )
        project = found.first()
        if project is None:
            raise MemoryRefused(
                "unknown_project", f"there is no project {row['organization']}/{row['project']}"
            )
        if not DepositedKnowledge.objects.may_see(self.user, project):
            raise MemoryRefused(
                "unknown_project", f"there is no project {row['organization']}/{row['project']}"
            )
        return Scope(project.organization_id, project_id=project.id)


def _time(text: Any) -> Any:
    if text is None:
        return None
    time = instant(text)
    if time is None:
        raise MemoryRefused("invalid_expires_at", "expires_at is no ISO 8601 time with a zone")
    return time
