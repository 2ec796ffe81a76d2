"""No page says anything in English that could not be said in another language."""

import re
from zoneinfo import available_timezones

import pytest
from django.urls import reverse
from django.utils.text import capfirst

from tests.admin_pages import OTHERS, PAGES, address_of, things_of
from tests.admin_world import client_of, superuser, tenant
from tests.factories import permit_all
from tests.pseudo_locale import OPEN, outside, spoken, unmarked

pytestmark = pytest.mark.django_db

NO_PAGES = ("_export", "_stream", "_live")

# What the world's objects are called has no Latin letters; the rest of what is data, or a name:
DATA = re.compile(
    r"""
    \b[Dd]pt_[\w-]{8} | \b\w+@[\w.]+ | https?://\S+ | \b[a-zA-Z]{3,4}_[0-9a-z]{26}\b          # addresses, ids
    | \b(?:[Cc]ap-approval-)?[0-9a-f]{64}\b | \bk{12,} | \bKk+\b             # digests, a key
    | \b\w*_\w+\b | \b\w+(?:[.:]\w+)+ | \{.*\} | \[.*\]                   # names in code, JSON
    | \b(?:acme|mia-of-acme(?:'s\ agent)?|Mia-of-acme|root|[Cc]rm|[Pp]ayment|local|scripted|project\d+)\b
    | \b(?:DECISION|STATUS|TASK|Personal\ agent|of\ others|other|openai|Openai)\b          # of the world
    | \b(?:subject|body|to|goal|code|message|result|success)\b                # arguments, results of a tool
    | \b(?:allow|deny|pending|high|jsonl|en|zh-hans)\b                        # codes
    | \b(?:Deputy|MCP|CEL|API|JSON|REST|CSV|JSONL|XLSX|YAML|URL|PDF|Markdown|UTC)\b
    | \b(?:Jan|Feb|March|April|May|June|July|Aug|Sept|Oct|Nov|Dec)\b\.?\ \d  # Django's own words for dates
    | \bSelect\ record\b                              # Unfold's, which looks it up once a process
    | \b(?:OpenAI|Ollama|Anthropic|Google|English|USD)\b
    | /sign-in/acme/                                   # an address
    """,
    re.VERBOSE,
)
# What stays in English where it stands, since it is kept so: in the log, in the record of changes.
KEPT = re.compile(
    r"""
    [Oo]rg_\w+\ at\ \d+(?:\ \|\ \|\ Deputy)? | root\ in\ 数据\ 42     # versions of policy, who looks
    | .+\ added.* | (?:of|[Mm]essage|\d+\ on)\ \w+.* | [Mm]ia-of-acme:\ approved.*
    | .*There\ is\ no\ tool\ .*                         # what is wrong with a name
    | .*Tool\ '\w+'\ requires\ approval.*               # policy's reasons
    | .*(?:nothing|what\ others\ wrote|it\ was\ read\ as).* # provenance's
    | '\w+'\ is\ a\ directory.* | (?:outside|user|organization)[;,].*
    | Nobody\ answers\ for\ .* | Models\ of\ '\w+:'\ need\ .*  # what a run would be told of a model
    | Set\ DEPUTY_\w+\ to\ .*
    """,
    re.VERBOSE,
)
COLUMNS = re.compile(r"name|\w+(?:, \w+)+")  # of a row, in the record of changes


@pytest.fixture
def made():
    return tenant("数据 42", "acme")


def of_admin(things):
    for name in PAGES:
        if (
            (name in OTHERS and OTHERS[name][0] != "get")
            or "export" in name
            or name.endswith(("_stream", "_live"))
        ):
            continue
        yield name, address_of(name, things)


def own_names(things):
    """How the world's rows call themselves, with and without a capital, and with what a title adds."""
    names = {" ".join(str(thing).split()) for thing in things.values()}
    return {form for name in names for form in (name, capfirst(name), f"{name} | | Deputy")}


def look(client, addresses, names):
    found, seen = {}, 0
    with spoken():
        for name, address in addresses:
            answer = client.get(address)
            if answer.status_code != 200 or "html" not in answer.headers["Content-Type"]:
                continue
            html = answer.content.decode()
            assert OPEN in html, name
            seen += 1
            for piece in unmarked(html, DATA):
                columns = name.startswith("groups_change_") and COLUMNS.fullmatch(piece)
                if not columns and not KEPT.fullmatch(piece) and piece not in names:
                    found.setdefault(piece, []).append(name)
    return found, seen


@pytest.mark.slow
def test_every_word_of_the_admin_can_be_translated(made):
    things = things_of(made)
    found, seen = look(client_of(superuser(made)), of_admin(things), own_names(things))
    assert seen > 90 and found == {}


def test_every_word_of_peoples_pages_can_be_translated(made):
    names = ("home", "conversations", "waiting", "known", "groups", "new_group", "settings", "notices",
             "schedules", "new_schedule")  # fmt: skip
    addresses = [(name, reverse(f"web:{name}")) for name in names]
    addresses += [
        (f"run {run.pk}", reverse("web:conversation", args=[run.pk])) for run in (made.run, made.asking)
    ]
    addresses += [("confirm", reverse("account_reauthenticate"))]
    addresses += [("approval", reverse("web:approval", args=[made.approval.pk]))]
    permit_all(made.user)
    found, seen = look(client_of(made.user), addresses, own_names(things_of(made)) | available_timezones())
    found_outside, _ = look(client_of(None), [("sign in", reverse("account_login"))], set())
    assert seen == len(addresses) and found | found_outside == {}


def test_what_is_not_marked_is_found():
    html = (
        "<h1>⟦Fine⟧</h1><p>⟦Also <b>fine</b>⟧ but not this</p><input placeholder='Nor this'>"
        "<code>send_email</code><button title='⟦Fine⟧'>Press</button><input type=submit value=Go>"
    )
    assert unmarked(html, DATA) == {"but not this", "Nor this", "Press", "Go"}
    assert outside("⟦a ⟦b⟧ c⟧ d")[0].split() == ["d"]
