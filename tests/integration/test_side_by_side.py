"""Migrations after 0.1.0a2 leave processes of the release before at work (CONTRIBUTING.md, Migrations)."""

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from tests import side_by_side

pytestmark = pytest.mark.django_db

APPS = ("groups", "memory", "policy", "runs")
# Before the first release that can be upgraded without stopping: part of an upgrade that stops everything.
STOPPED = {
    ("groups", "0016_heard"),
    ("memory", "0011_find_neighbours_once"),
    ("runs", "0024_event_count_names"),
    ("runs", "0025_heard"),
    ("runs", "0026_watch_what_waits"),
    ("runs", "0028_a2a"),
}
TEXT = models.CharField(max_length=10, null=True)
WITH_DEFAULT = models.CharField(max_length=9, default="", db_default="")
REFUSED = [
    ("ban-drop-column", migrations.RemoveField("run", "goal")),
    ("ban-drop-table", migrations.DeleteModel("Run")),
    ("renaming-column", migrations.RenameField("run", "goal", "aim")),
    ("renaming-table", migrations.AlterModelTable("run", "elsewhere")),
    ("changing-column-type", migrations.AlterField("run", "depth", models.BigIntegerField())),
    (
        "adding-not-nullable-field",
        migrations.AlterField("run", "goal", models.CharField(max_length=10, default="")),
    ),
    ("ban-drop-default", migrations.AddField("run", "mood", models.CharField(max_length=9, default="x"))),
    (
        "require-concurrent-index-creation",
        migrations.AddIndex("run", models.Index(fields=["goal"], name="by_goal")),
    ),
    (
        "constraint-missing-not-valid",
        migrations.AddConstraint(
            "run", models.CheckConstraint(condition=models.Q(depth__gte=0), name="deep")
        ),
    ),
    (side_by_side.CHANGES_DATA, migrations.RunSQL("-- all\nUPDATE runs_run SET goal = ''")),
    (side_by_side.RUNS_PYTHON, migrations.RunPython(migrations.RunPython.noop)),
]
ACCEPTED = [
    migrations.AddField("run", "mood", TEXT),
    migrations.AddField("run", "mood", WITH_DEFAULT),
    migrations.CreateModel("Mood", [("id", models.AutoField(primary_key=True)), ("mood", TEXT)]),
    migrations.RunSQL("CREATE FUNCTION mood() RETURNS text LANGUAGE sql RETURN 'good'"),
]


def objections(operation, accepted=None):
    """To a migration of one operation on a small model."""
    before = ProjectState()
    fields = [("id", models.AutoField(primary_key=True)), ("goal", TEXT), ("depth", models.IntegerField())]
    before.add_model(ModelState("runs", "Run", fields))
    made = migrations.Migration("0999_later", "runs")
    made.operations, made.side_by_side = [operation], accepted or {}
    return side_by_side.objections(made, before)


def test_no_migration_locks_or_takes_away_what_the_release_before_uses():
    graph, state, broken = MigrationLoader(connection).graph, ProjectState(), {}
    for key in graph._generate_plan(graph.leaf_nodes(), at_end=True):
        migration = graph.nodes[key]
        released = key[0] not in APPS or "squashed" in key[1] or key in STOPPED
        if not released and not all(map(side_by_side.only_adds, migration.operations)):
            # of a clone: once models are made of a state, every further change of it makes them anew
            broken[key] = side_by_side.objections(migration, state.clone())
        state = migration.mutate_state(state, preserve=False)

    assert {key: found for key, found in broken.items() if found} == {}


def test_what_a_release_before_would_stumble_over_is_refused_unless_somebody_says_why():
    for rule, operation in REFUSED:
        assert rule in objections(operation), rule
        assert rule not in objections(operation, {rule: "nobody has read it since 0.1"}), rule
        assert rule in objections(operation, {rule: " "}), rule


def test_what_only_adds_is_accepted():
    assert [objections(operation) for operation in ACCEPTED] == [{}] * len(ACCEPTED)
    assert not any(side_by_side.only_adds(operation) for _, operation in REFUSED)


def test_a_migration_waits_no_longer_for_a_lock_than_anybody():
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone()[0] != "0"
