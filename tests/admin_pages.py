"""Every page of the admin, as its URLs name them, and how it is opened."""

from django.contrib import admin
from django.urls import URLResolver, reverse

import config.urls  # noqa: F401 - which takes pages away
from memory.models import DepositedKnowledge, Remembered
from runs.models import QueueMessage, WorkerGroup
from tests.admin_world import objects_of

VERBS = {"changelist": "view", "add": "add", "change": "view", "delete": "delete", "history": "view"}
OF_ONE = ("change", "delete", "history")  # pages about one object
# Django's own: for everybody who is staff, or for the signing in itself
OF_DJANGO = {
    "index", "login", "logout", "password_change", "password_change_done", "jsi18n", "autocomplete",
    "app_list", "search",
}  # fmt: skip
# all others: how they are opened, the model of the object they are about, the permission they take
OTHERS = {
    "runs_run_ask": ("get", "", "runs.start_run"),
    "runs_run_live": ("get", "runs_run", "runs.view_run"),
    "runs_run_stream": ("get", "runs_run", "runs.view_run"),
    "runs_run_fork": ("get", "runs_run", "runs.start_run"),
    "runs_run_again": ("post", "runs_run", "runs.start_run"),
    "runs_approval_next": ("get", "", "runs.view_approval"),
    "runs_approval_state": ("get", "runs_approval", "runs.view_approval"),
    "runs_health": ("get", "", "superuser"),
    "runs_run_cancel": ("get", "runs_run", "runs.cancel_run"),
    "runs_run_say": ("post", "runs_run", "runs.cancel_run"),
    "runs_run_resolve": ("post", "runs_run", "runs.resolve_review"),
    "runs_models": ("get", "", "runs.view_modelkey"),
    "runs_models_try": ("post", "", "runs.try_modelkey"),
    "runs_what_if": ("get", "", "policy.view_capabilityrule"),
    "runs_decisions": ("get", "", "runs.view_runevent"),
    "runs_decisions_export": ("get", "", "runs.view_runevent"),
    "runs_decided": ("get", "", "runs.view_approval"),
    "runs_decided_export": ("get", "", "runs.view_approval"),
    "groups_proposedchange_decide": ("post", "groups_proposedchange", "groups.view_proposedchange"),
    "groups_group_where": ("get", "", "groups.view_group"),
    "groups_group_learn": ("post", "", "groups.add_routingexample"),
    "memory_depositedknowledge_import": ("get", "", "memory.curate_memory"),
    "memory_depositedknowledge_process_import": ("post", "", "memory.curate_memory"),
    "memory_depositedknowledge_export": ("get", "", "memory.view_memory"),
    "groups_organization_choose": ("get", "", ""),
    "auth_user_password_change": ("get", "auth_user", "superuser"),
}


def names(patterns):
    """The names of all pages below these patterns."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from names(pattern.url_patterns)
        elif pattern.name:
            yield pattern.name


PAGES = sorted(set(names(admin.site.urls[0])) - OF_DJANGO)


def stem_of(name):
    """The model of a page whose name ends in one of the usual verbs; None for the others."""
    stem, _, verb = name.rpartition("_")
    return stem if name not in OTHERS and verb in VERBS else None


def about_an_object(name):
    """The model whose object the page is about, if it is about one."""
    if name in OTHERS:
        return OTHERS[name][1]
    return stem_of(name) if name.rpartition("_")[2] in OF_ONE else ""


def address_of(name, things):
    stem = about_an_object(name)
    more = [2] if name == "runs_run_fork" else []  # from which event
    return reverse(f"admin:{name}", args=[things[stem].pk, *more] if stem else [])


def things_of(made):
    message = QueueMessage.objects.create(queue="other", payload="x")
    workers = WorkerGroup.objects.create(name=made.organization.slug, host="h", workers=1, busy=0)
    return {
        **objects_of(made),
        "auth_user": made.user,
        "runs_queuemessage": message,
        "runs_workergroup": workers,
        "memory_depositedknowledge": DepositedKnowledge.objects.filter(organization=made.organization)[0],
        "memory_remembered": Remembered.objects.filter(organization=made.organization, user=None)[0],
    }


def status(client, name, things):
    method = OTHERS[name][0] if name in OTHERS else "get"
    group = {"group": things["groups_group"].pk} if name == "groups_group_learn" else {}
    return getattr(client, method)(address_of(name, things), group).status_code
