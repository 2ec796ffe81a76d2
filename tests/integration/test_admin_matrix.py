"""Every page of the admin × everybody who might open it. The pages are asked of the URLs themselves: a new
one that no rule here knows fails.
"""

import pytest

from tests.admin_pages import OTHERS, PAGES, VERBS, about_an_object, status, stem_of, things_of
from tests.admin_world import APPROVER, client_of, person, superuser, tenant
from tests.factories import permit_all

pytestmark = pytest.mark.django_db

ALSO = {  # a second permission a page takes
    **dict.fromkeys(("runs_run_live", "runs_run_cancel", "runs_run_resolve"), "runs.view_run"),
    "policy_grant_add": "runs.decide_approval",
}
# What has happened is added and deleted by nobody; tokens and standing approvals are revoked.
HAPPENED = (
    "runs_run", "runs_runevent", "runs_toolcall", "runs_wait", "runs_approval", "runs_approvaldecision",
    "runs_approvalnotice", "runs_idempotencyrecord", "runs_queuemessage", "runs_workergroup",
    "policy_grantuse", "policy_policyversion", "memory_depositedknowledge", "runs_webhookdelivery",
    "runs_schedule", "runs_scheduledrun",
    "groups_change", "groups_proposedchange",
)  # fmt: skip
NOBODY = {f"{stem}_{verb}" for stem in HAPPENED for verb in ("add", "delete")}
NOBODY |= {"groups_token_delete", "policy_grant_delete", "runs_mcptool_add", "memory_remembered_add"}
NOBODY |= {"runs_run_fork", "runs_run_again"}  # but the person for whom the run works
SUPERUSERS = {
    *(f"{stem}_{verb}" for stem in ("runs_queuemessage", "runs_workergroup") for verb in VERBS),
    *(f"auth_user_{verb}" for verb in ("add", "delete")),
    "groups_organization_add",
    "groups_organization_delete",
    "memory_remembered_delete",  # and the person it is about
}
# of the staff: each sees what is remembered of themselves, and where they belong
EVERYBODY = {"memory_remembered_changelist", "groups_organization_choose"}
CURATOR = ("memory.view_memory", "memory.curate_memory")
OPERATOR = ("runs.view_run", "runs.view_toolcall", "runs.view_wait", "runs.view_runevent", "runs.cancel_run",
            "runs.resolve_review")  # fmt: skip


def required(name):
    """The permission a page takes."""
    if name in OTHERS:
        return OTHERS[name][2]
    if name in EVERYBODY:
        return ""
    stem, _, verb = name.rpartition("_")
    app, _, model = stem.partition("_")
    if app == "memory":
        model = "memory"
    return f"{app}.{VERBS[verb]}_{model}"


def test_every_page_has_a_rule():
    assert len(PAGES) > 100
    assert not [name for name in PAGES if name not in OTHERS and stem_of(name) is None]
    assert not set(OTHERS) - set(PAGES)


def test_no_page_lets_staff_have_functions_called_by_the_queue():
    assert not [name for name in PAGES if name.startswith("django_q")]


@pytest.mark.parametrize("who", ["anonymous", "member"])
def test_who_is_not_staff_is_sent_to_sign_in(who, made):
    client = client_of(made.user if who == "member" else None)
    things = things_of(made)
    assert {name: found for name in PAGES if (found := status(client, name, things)) != 302} == {}


@pytest.mark.parametrize(
    ("who", "permissions"),
    [
        ("clerk", ()),
        ("approver", APPROVER),
        pytest.param("curator", CURATOR, marks=pytest.mark.slow),
        pytest.param("operator", OPERATOR, marks=pytest.mark.slow),
        pytest.param("everything", None, marks=pytest.mark.slow),
    ],
)
def test_staff_open_what_they_have_the_permission_for(who, permissions, made):
    user = person(made, who, *(permissions or ()), is_staff=True)
    if permissions is None:
        user = permit_all(user)
    client, things = client_of(user), things_of(made)

    def may(name):
        if name in NOBODY | SUPERUSERS or required(name) == "superuser":
            return False
        return all(user.has_perm(one) for one in filter(None, (required(name), ALSO.get(name))))

    opened = {name: status(client, name, things) not in (403, 404) for name in PAGES}
    assert {name: found for name, found in opened.items() if found != may(name)} == {}
    assert sum(opened.values()) >= len(permissions or ())


@pytest.mark.slow
def test_a_superuser_opens_all_that_anybody_may(made):
    client, things = client_of(superuser(made)), things_of(made)
    found = {name: status(client, name, things) for name in PAGES}
    assert {name for name, code in found.items() if code == 403} == NOBODY & set(PAGES)
    assert {name: code for name, code in found.items() if code >= 500} == {}


def test_an_admin_of_another_tenant_finds_no_object_of_this_one(made):
    elsewhere = tenant("Elsewhere", "elsewhere")
    user = person(elsewhere, "foreign", is_staff=True)
    user = permit_all(user)
    client, things = client_of(user), things_of(made)
    about_one = [name for name in PAGES if about_an_object(name)]
    found = {name: status(client, name, things) for name in about_one}
    assert len(found) > 60
    assert {name: code for name, code in found.items() if code not in (403, 404)} == {}
    refused = {name for name, code in found.items() if code == 403}
    assert refused <= NOBODY | SUPERUSERS | {"auth_user_password_change"}
