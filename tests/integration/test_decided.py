"""Who decided what: at the admin and over the API, in filters and files, and never beyond one's sight."""

import csv
import io
import json
import zipfile

import pytest
from django.urls import reverse

from runs.models import Approval, ApprovalDecision
from runs.observe import decided
from tests.acting import approve, reject
from tests.admin_world import APPROVER, client_of, drive, person, superuser, tenant, url
from tests.factories import ProjectFactory
from tests.scripted import by_role, call

from .api_client import Api

pytestmark = pytest.mark.django_db

ADDRESS = "approvals/decisions/"
OWN_PAGE = "/decided/"


@pytest.fixture
def made():
    made = tenant()
    ApprovalDecision.objects.all().delete()
    return made


@pytest.fixture
def ines(made):
    return person(made, "ines", *APPROVER, is_staff=True)


def asked(made, subject="Prices", tool="send_email"):
    letter = {"to": ["ada@example.org"], "subject": subject, "body": "x"}
    return Approval.objects.get(run=drive(made, "Write", by_role(Personal_agent=[call((tool, letter))])))


def test_a_decider_finds_what_they_decided_last_month_in_three_clicks(made, ines):
    approve(made.approval.pk, ines, reason="Go")
    client = client_of(ines)
    first = client.get(url("index")).content.decode()

    assert url("runs_decided") in first
    page = client.get(url("runs_decided"))
    presets = dict(page.context["presets"])
    mine = client.get(f"{url('runs_decided')}?{presets['What I decided']}")
    last = client.get(f"{url('runs_decided')}?{dict(mine.context['presets'])['Last month']}")

    (found,) = mine.context["rows"]
    assert (found[0].decider, found[0].decision, found[0].reason) == ("ines", "approved", "Go")
    assert found[0].arguments["to"] == ["ada@example.org"]
    assert last.context["query"].startswith("decider=ines&since=") and last.context["rows"] == []


def test_a_key_in_a_reason_is_shown_nowhere_and_the_agent_reads_the_words(made, ines):
    key = "sk-abcdefghijklmnopqrstuvwxyz123456"
    reject(made.approval.pk, ines, reason=f"Use {key} instead")
    api = Api(ines, made.organization)
    shown = [b"".join(api.get(f"{ADDRESS}export/?as={form}").streaming_content) for form in ("csv", "jsonl")]
    shown += [api.get(ADDRESS).content, api.get(f"approvals/{made.approval.pk}/").content]
    shown += [
        client_of(ines).get(page).content for page in (url("runs_decided"), f"/approvals/{made.approval.pk}/")
    ]
    assert all(b"instead" in one and key.encode() not in one for one in shown)
    ended = made.approval.run.events.filter(type="wait.completed").order_by("seq")
    assert [one.payload["payload"]["reason"] for one in ended if "reason" in one.payload["payload"]] == [
        f"Use {key} instead"
    ]


def test_the_filters_narrow_and_the_files_say_the_same(made, ines):
    omar = person(made, "omar", *APPROVER, is_staff=True)
    approve(made.approval.pk, ines)
    reject(asked(made, "=HYPERLINK(1)").pk, omar, "=1+1")
    client = client_of(superuser(made))

    def rows(**query):
        return [row.decider for row, _ in client.get(url("runs_decided", **query)).context["rows"]]

    assert rows() == ["omar", "ines"] and rows(decider="ines") == ["ines"]
    assert rows(project=made.project.slug) == ["omar", "ines"] and rows(project="none") == []
    assert rows(tool="http_get") == [] and rows(until="2020-01-01") == []
    files = {form: whole(client.get(url("runs_decided_export", **{"as": form}))) for form in decided.TYPES}
    lines = list(csv.DictReader(io.StringIO(files["csv"].decode())))
    assert [line["reason"] for line in lines] == ["'=1+1", ""]  # no spreadsheet takes it for a formula
    told = [json.loads(line) for line in files["jsonl"].decode().splitlines()]
    assert (told[0]["arguments"]["subject"], told[0]["reason"]) == ("=HYPERLINK(1)", "=1+1")
    sheet = zipfile.ZipFile(io.BytesIO(files["xlsx"])).read("xl/worksheets/sheet1.xml").decode()
    assert "=1+1" in sheet and "<f>" not in sheet


def whole(answer):
    return b"".join(answer.streaming_content)


def test_a_decider_who_is_not_staff_has_the_same_page_of_their_own(made):
    nora = person(made, "nora", *APPROVER)
    approve(made.approval.pk, nora, reason="Go")
    colleague = person(made, "col", "runs.view_approval")
    client = client_of(nora)

    def rows(client, **query):
        return [(row.decider, row.reason) for row, _ in client.get(OWN_PAGE, query).context["rows"]]

    page = client.get(OWN_PAGE)
    mine = dict(page.context["presets"])["What I decided"]
    assert mine in page.content.decode().replace("&amp;", "&") and "ada@example.org" in page.content.decode()
    assert rows(client, decider="nora") == [("nora", "Go")] and rows(client, decider="ines") == []
    file = client.get(reverse("web:decided_export"), {"as": "jsonl", "decider": "nora"})
    assert [json.loads(line)["reason"] for line in whole(file).decode().splitlines()] == ["Go"]
    assert client.get(reverse("web:decided_export"), {"as": "exe"}).status_code == 404
    assert rows(client_of(colleague)) == []  # of runs that are not theirs
    assert rows(client_of(person(tenant("Their business", "rival"), "sam", *APPROVER))) == []


def test_over_the_api_a_page_at_a_time_with_a_scope_of_its_own(made, ines):
    approve(made.approval.pk, ines)
    reject(asked(made).pk, ines, "No")
    client = Api(ines, made.organization, scopes=["approvals:read"])

    first = client.get(ADDRESS, limit=1).json()
    second = client.client.get(first["next"], headers=client.headers).json()

    assert [one["decision"] for one in (*first["results"], *second["results"])] == ["rejected", "approved"]
    assert second["next"] is None
    assert whole(client.get(f"{ADDRESS}export/", **{"as": "jsonl"})).count(b"\n") == 2
    assert client.get(ADDRESS, since="yesterday").status_code == 400
    assert client.get(f"{ADDRESS}export/", **{"as": "exe"}).status_code == 400
    blind = Api(ines, made.organization, scopes=["runs:read"])
    assert (blind.get(ADDRESS).status_code, blind.get(f"{ADDRESS}export/").status_code) == (403, 403)


def test_nobody_sees_beyond_their_organization_projects_and_rights(made, ines):
    approve(made.approval.pk, ines)
    elsewhere = ProjectFactory(organization=made.organization)
    auditor = person(made, "aud", "runs.view_runevent", "runs.view_approval", is_staff=True)
    limited = person(made, "lim", "runs.view_runevent", "runs.view_approval", is_staff=True)
    limited.memberships.update(projects=[elsewhere.pk])
    colleague = person(made, "col", "runs.view_approval", is_staff=True)
    rival = tenant("Their business", "rival")
    stranger = person(rival, "sam", *APPROVER, "runs.view_runevent", is_staff=True)

    def seen(user, organization=made.organization):
        found = Api(user, organization, scopes=["approvals:read"]).get(ADDRESS).json()["results"]
        page = client_of(user).get(url("runs_decided")).context["rows"]
        return {one["decider"] for one in found} | {row.decider for row, _ in page}

    assert "ines" in seen(auditor) and "ines" in seen(ines)
    assert seen(limited) == seen(colleague) == set()
    assert "ines" not in seen(stranger, rival.organization)
    assert client_of(person(made, "pat", is_staff=True)).get(url("runs_decided")).status_code == 403


def test_secrets_are_masked_in_what_auditors_read(made, ines):
    approval = asked(made, "the key is sk-abcdef1234567890abcdef")
    approve(approval.pk, ines)

    (row,) = decided.every(decided.filtered(ApprovalDecision.objects.all(), decided.Asked()), None)

    assert "sk-abcdef" not in json.dumps(row.arguments) and "[redacted]" in row.arguments["subject"]
