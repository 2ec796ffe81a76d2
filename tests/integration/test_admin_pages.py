"""Every page of the admin opens, shows what is stored as text, and costs a constant number of queries."""

from contextlib import suppress

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction

from groups.models import (
    Absence,
    Cell,
    Connection,
    KeptSignIn,
    Move,
    MovedPerson,
    MovedToken,
    OtherCell,
    ProviderSession,
    Reader,
    StorageUse,
)
from runs.models import (
    A2ATask,
    ApprovalWatch,
    Carrier,
    ChatAccount,
    ConnectedAccount,
    Conversation,
    DatabaseLine,
    EventCount,
    EventCountCursor,
    Follower,
    GoneMonth,
    InstallationKey,
    McpTask,
    OutboundCall,
    OutboundTarget,
    QueueMessage,
    Rating,
    RemoteTask,
    ShownWords,
    TriedModel,
    WorkerGroup,
)
from tests.admin_world import client_of, objects_of, registered, superuser, url
from tests.forms import change_form

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(made):
    return client_of(superuser(made))


def test_every_model_is_registered():
    own = [model for app in ("groups", "policy", "runs") for model in apps.get_app_config(app).get_models()]
    installation = (
        Carrier,
        Follower,
        ShownWords,
        OutboundTarget,
        QueueMessage,
        EventCount,
        EventCountCursor,
        DatabaseLine,
        GoneMonth,
        InstallationKey,
        WorkerGroup,
        Cell,
        Move,
        MovedPerson,
        MovedToken,
        OtherCell,
        StorageUse,
    )  # cells: `cell` and `move_organization`; storage: the organization's page
    persons = (
        Absence,
        ApprovalWatch,
        ChatAccount,
        ConnectedAccount,
        Connection,
        Conversation,
        KeptSignIn,
        ProviderSession,
        Rating,
        Reader,
    )  # on their own pages
    # calls on their way hold prompts: the queue's page counts them
    # the page of models shows what was tried; a task of A2A is shown as its run, one at others as its call
    for model in (*installation, *persons, OutboundCall, TriedModel, A2ATask, McpTask, RemoteTask):
        own.remove(model)

    assert sorted(registered()) == sorted(f"{m._meta.app_label}_{m._meta.model_name}" for m in own)


def test_every_object_of_the_tests_world_is_known(made):
    assert sorted(objects_of(made)) == sorted(registered())


@pytest.mark.parametrize("stem", registered())
def test_lists_and_pages_open(stem, made, root):
    listed = root.get(url(f"{stem}_changelist"))
    page = root.get(url(f"{stem}_change", objects_of(made)[stem].pk))
    new = root.get(url(f"{stem}_add"))

    assert (listed.status_code, page.status_code) == (200, 200)
    assert new.status_code in (200, 403)


@pytest.mark.parametrize("stem", registered())
def test_lists_open_when_there_is_nothing(stem, db):
    assert client_of(superuser()).get(url(f"{stem}_changelist")).status_code == 200


def test_the_other_pages_open(made, root):
    for address in (
        url("index"),
        url("runs_run_ask"),
        url("runs_run_cancel", made.run.pk),
        url("runs_run_live", made.run.pk),
        url("groups_group_where", goal="prices"),
        url("groups_group_change", made.group.pk) + "?goal=prices",
        url("runs_queuemessage_changelist"),
        url("runs_workergroup_changelist"),
        url("memory_depositedknowledge_changelist"),
        url("memory_remembered_changelist"),
        url("auth_user_changelist"),
        url("auth_user_add"),
        url("auth_user_change", made.user.pk),
        url("groups_organization_choose"),
    ):
        assert root.get(address).status_code == 200, address


# Of the world's rows, what no form would take.
VALID = {
    "groups_role": {"denied_tools": ["ask_user"]},
    "policy_toolbinding": {"pattern": "mail_*"},
    "policy_tooldeclaration": {"tool": "send_email"},
}
# Lists of other things than names; who saved it; whose it is, which decides whether there is a page.
OF_THEIR_OWN = ("projects", "permissions", "rules", "corrected_by", "organization")


def stored(field):
    """What may stand in a column: of lists and choices each kind."""
    if field.primary_key or field.name in OF_THEIR_OWN:
        return []
    found = [None] if field.null else []
    if isinstance(field, models.BooleanField):
        return [*found, True, False]
    if field.choices:
        return [*found, *(value for value, _ in field.flatchoices)]
    if isinstance(field, models.JSONField):
        return [*found, [], ["send_email"], ["send_email", "memory_search"]]
    return [*found, 7] if isinstance(field, models.IntegerField) else found


@pytest.mark.parametrize("stem", registered())
def test_a_form_that_is_saved_as_it_is_shown_changes_nothing(stem, made, root):
    thing = objects_of(made)[stem]
    page, row = url(f"{stem}_change", thing.pk), type(thing)._base_manager.filter(pk=thing.pk)
    row.update(**VALID.get(stem, {}))
    opened = root.get(page)
    if b'name="_save"' not in opened.content:
        return
    assert root.post(page, change_form(opened)).status_code == 302
    kept, changed = row.values().get(), {}
    for field in type(thing)._meta.concrete_fields:
        for value in stored(field):
            with suppress(IntegrityError), transaction.atomic():
                row.update(**{**kept, field.attname: value})
                root.post(page, change_form(root.get(page)))
                after = {**row.values().get(), "changed_at": kept.get("changed_at")}
                before = {"changed_at": None, **kept, field.attname: value}
                different = {one for one in before if before[one] != after[one]}
                changed |= {(field.name, str(value)): different} if different else {}
                transaction.set_rollback(True)
    assert changed == {}
