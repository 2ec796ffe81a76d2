"""Pages are light: counted in bytes, whatever the machine."""

import pytest
from django.urls import reverse

from tests.admin_world import client_of, superuser, tenant, url
from tests.weight import weights

pytestmark = pytest.mark.django_db

OWN, ADMIN = 100_000, 420_000  # bytes; the admin's are nearly all its theme's, which browsers keep
OWN_PAGES = ("home", "waiting", "decided", "known", "schedules", "new_schedule", "groups", "settings",
             "notices", "conversations")  # fmt: skip
ADMIN_PAGES = ("index", "runs_approval_changelist", "runs_run_changelist", "runs_models", "runs_decided",
               "groups_group_changelist", "policy_capabilityrule_changelist")  # fmt: skip


def test_every_page_is_light_on_the_wire():
    made = tenant()
    person, root = client_of(made.user), client_of(superuser(made))
    own = [reverse(f"web:{name}") for name in OWN_PAGES]
    own += [reverse("web:approval", args=[made.approval.pk])]
    own += [reverse("web:conversation", args=[made.run.pk])]
    admin = [*map(url, ADMIN_PAGES), url("runs_run_change", made.run.pk)]
    admin += [url("runs_approval_change", made.approval.pk)]

    pages = [(person, address, OWN) for address in own] + [(root, address, ADMIN) for address in admin]
    found = {address: (weights(client, address), most) for client, address, most in pages}

    heavy = {address: had for address, (had, most) in found.items() if sum(had.values()) > most}
    assert heavy == {}
