"""Conditions: what they may say, what is refused when they are saved, what they cost at worst."""

import gc
import sys
from itertools import product

import pytest

from policy.conditions import MAX_LENGTH, ConditionError, check, holds
from policy.meanings import LONGEST
from policy.provenance.terms import Facts, Traced
from policy.strict import DIFFERENT, FIRST, MEMBER, PAIR
from tests.guard import ends

SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "count": {"type": "integer"},
        "currency": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"type": ["string", "null"]},
        "type": {"type": "string"},
        "reply-to": {"type": "string"},
        "in": {"type": "string"},
    },
    "required": ["amount"],
}


@pytest.mark.parametrize(
    ("condition", "arguments", "truth"),
    [
        ('amount <= 100 && currency == "EUR"', {"amount": 100, "currency": "EUR"}, True),
        ('amount <= 100 && currency == "EUR"', {"amount": 100.01, "currency": "EUR"}, False),
        ("args.amount <= 100", {"amount": 99}, True),
        ('args["reply-to"].endsWith("@example.org")', {"reply-to": "a@example.org"}, True),
        ('args["reply-to"].endsWith("@bank.example")', {"reply-to": "Eve@BANK.Example"}, True),
        ('args["reply-to"] == "eve@bank.example"', {"reply-to": "EVE@bank.example"}, True),
        ('args["reply-to"].endsWith("@Bank.example")', {"reply-to": "eve@bank.example"}, True),
        ('args["reply-to"].contains("@bank.example")', {"reply-to": "x" * 99 + "@BANK.example"}, True),
        ('note.startsWith("https://evil.example/")', {"note": "HTTPS://EVIL.example/Path"}, True),
        ('note.endsWith("/Path")', {"note": "https://EVIL.example/Path"}, True),
        ('tags.exists(tag, tag == "a@b.example")', {"tags": ["A@B.example"]}, True),
        ('note == "VIP"', {"note": "vip"}, False),
        ('tags.exists(tag, tag.endsWith("Bank.example"))', {"tags": ["eve@Bank.example"]}, True),
        ('tags.exists(tag, tag.endsWith("@bücher.example"))', {"tags": ["e@xn--BCHER-kva.example"]}, True),
        ('tags.exists(tag, tag.endsWith("@xn--bcher-kva.example"))', {"tags": ["e@Bücher.example"]}, True),
        ('note == "xn--bcher-kva.example"', {"note": "bücher.example"}, True),
        ('note == "xn--99999999"', {"note": "xn--99999999"}, True),
        ('args.tags.exists(tag, tag.endsWith("@bank.example"))', {"tags": {"eve@BANK.example": True}}, True),
        ('"Eve@bank.example" in args.tags', {"tags": {"Eve@Bank.example": True}}, True),
        (r'note.matches("^\\S+@(Bank|Post)[.]example$")', {"note": "eve@Bank.example"}, True),
        (r'note.matches(r"^\S+@(Bank|Post)[.]example$")', {"note": "eve@Bank.example"}, True),
        (r'note.contains("\U0001F600 HI")', {"note": "\U0001f600 hi joe@bank.example"}, True),
        (r'note.matches("^\\S+@bank\\.example$")', {"note": "eve@Bank.example"}, True),
        (r'note.matches(r"^\p{L}+@bank\.example$")', {"note": "eve@bank.example"}, True),
        (r'note.matches("^https://\\S+\\.Bank\\.example/")', {"note": "https://www.bank.example/"}, True),
        ('note.contains("xn--")', {"note": "eve@xn--bcher-kva.example"}, True),
        ('note.contains("xn--") || note == "e@bücher.de"', {"note": "e@xn--bcher-kva.de"}, True),
        ('note.startsWith("https://evil.example/")', {"note": "https://EVIL。example/"}, True),
        ('note.endsWith("@evil.example")', {"note": "joe@sub｡EVIL．example"}, False),
        ('note.endsWith(".evil.example")', {"note": "joe@sub｡EVIL．example"}, True),
        ('note.contains("//evil.example")', {"note": "https://ｅVIL．example/"}, True),
        ('note.contains("//evil.example")', {"note": "https://ev\u00adil.example/"}, True),
        ('note.endsWith("@Bücher.example")', {"note": "joe@bu\u0308CHER.example"}, True),
        ('note.contains("ceo@bank.example")', {"note": "joe@post.example;CEO@bank.example"}, True),
        ('note.startsWith("\\"ceo\\"@")', {"note": '"CEO"@bank.example'}, True),
        ('note.endsWith(".example")', {"note": "eve@हिन्दी.EXAMPLE"}, True),
        ('note.contains("//xn--")', {"note": "https://bücher.example:8443/Path"}, True),
        ('note.contains("@xn--")', {"note": "joe@ｘn--bcher-kva.example"}, True),
        ('note.contains("@xn--")', {"note": f"joe@{'ü' * 64}.example"}, False),
        ('note.contains("xn--") && !note.endsWith("@bücher.de")', {"note": "joe@bücher.de"}, False),
        (
            'note.matches("@xn\\\\-\\\\-bcher\\\\-kva[.]example$")',
            {"note": "joe@xn--bcher-kva.example"},
            True,
        ),
        ('note.contains("evil.example")', {"note": "EVIL.example/Path"}, True),
        ('note.endsWith("evil.example")', {"note": "https:\\\\EVIL.example"}, True),
        ('note.contains("evil.example")', {"note": "ｅV\u00adIL．example/Path"}, True),
        ('note.contains("xn--")', {"note": "bücher.example"}, True),
        ('note.endsWith("@evil.example")', {"note": "joe＠ｅvil.example"}, True),
        ('note == "evil.example"', {"note": "EVIL｡example"}, True),
        ('note.endsWith("bu\u0308cher.example")', {"note": "joe@xn--bcher-kva.example"}, True),
        ('note == "cafe\u0301"', {"note": "cafe\u0301"}, True),
        ('note.contains("ΝΊΚΟΣ")', {"note": "joe@νίκοσ.example"}, True),
        ('note.matches("@ΝΊΚΟΣ[.]example$")', {"note": "joe@νίκοσ.example"}, True),
        ('note == "Report.Final"', {"note": "Report.Final"}, True),
        ('note.contains("evil.example")', {"note": "EVIL.example is down"}, False),
        ('note == "ｗｉｄｅ joe@bank.example"', {"note": "ｗｉｄｅ joe@Bank.example"}, True),
        ('args["Reply-To"].startsWith("CEO")', {"Reply-To": "ceo@bank.example"}, True),
        ('note in ["CEO@Bank.example", "CFO"]', {"note": "cfo", "tags": ["a@b.example"]}, False),
        (
            'note in ["CEO@Bank.example", "CFO"] || tags == []',
            {"note": "cfo", "tags": ["a@b.example"]},
            False,
        ),
        ("has(args.amount) && args.amount > 1", {}, False),
        ("amount == 100", {"amount": 100.0}, True),
        ('tags.exists(tag, tag == "vip")', {"tags": ["vip"]}, True),
        ('note == null || note == ""', {"note": None}, True),
        ('currency == "欧元"', {"currency": "欧元"}, True),
        ('currency.matches("^E[A-Z]R$")', {"currency": "EUR"}, True),
        ("args.args == 1", {"args": 1}, True),
        ('args.type == "x" && args["in"] == "y"', {"type": "x", "in": "y"}, True),
        ("args.items[1].price > 5", {"items": [{}, {"price": 6}]}, True),
    ],
)
def test_a_condition_speaks_of_the_arguments(condition, arguments, truth):
    assert holds(condition, arguments) is truth


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ('currency == "EUR" && note.endsWith("@bank.example")', True),
        ('note.endsWith("Bank.example")', False),
        ('!note.endsWith("Bank.example")', False),
        ('note.matches("^[A-Z]")', False),
        ('!note.contains("xn--") && !args.hosts[0].contains("xn--")', False),
        ('!args.hosts[1].contains("evil.example")', False),
        ('args.hosts[1] == "EVIL.example"', True),
    ],
)
def test_of_a_rule_that_allows_an_address_is_meant_in_both_ways(condition, truth):
    arguments = {
        "note": "Eve@Bank.example",
        "currency": "EUR",
        "hosts": ["xn--bcher-kva.example", "EVIL.example"],
    }
    assert holds(condition, arguments, allows=True) is truth


@pytest.mark.parametrize(
    "to",
    [
        "Eve <eve@Rival.example>",
        '"Doe, Jane" <eve@rival.example>',
        "<eve@rival.example>",
        "eve@rival.example ",
        "eve@rival.example.",
        "eve@rival.example, ann@bank.example",
        "ann@bank.example; eve@rival.example (Eve)",
        "eve@rival.example\u2028ann@bank.example",
        "mailto:eve@rival.example\nann@bank.example",
        "MAILTO:eve@rival.example",
        "<Mailto:eve@rival.example>",
        "Team: eve@rival.example, ann@bank.example;",
        "Eve <eve@rival.example> Ann <ann@bank.example>",
        '"Ann @ Bank" <ann@bank.example>, eve@rival.example',
        '"Eve @ Work" <eve@rival.example>',
        "Eve @ Work <eve@rival.example>",
        '"Eve <work>" <eve@rival.example>',
        "eve@rival.example (work, main)",
        "eve@rival.example (x (y))",
        "Team: eve@rival.example, q@x.example;",
        '"eve"@rival.example',
        '"\\eve"@rival.example, ann@bank.example',
        "Eve <@one.example,@two.example:eve@rival.example>",
        "Ann @@ Bank <ann@bank.example>, eve@rival.example",
        "eve@rival.example, Ann @@ Bank <ann@bank.example>",
        "Eve <eve\uff20rival.example>",
        "eve\uff20rival.example, ann@bank.example",
        "Eve \uff1ceve@rival.example\uff1e",
        "\u201ceve@rival.example\u201d",
        "eve@rival.example\uff0cann@bank.example",
        "<> eve@rival.example",
        "eve@rival.example and ann@bank.example",
        "ann@bank.example/eve@rival.example",
        "eve@rival.example!",
        "{'email': 'eve@rival.example'}",
        "=?utf-8?q?eve=40rival=2Eexample?=",
        "\u200bann@bank.example, =?UTF-8?B?ZXZlQHJpdmFsLmV4?=\r\n =?utf-8?q?ample?=",
        "=?utf-8*en?q?eve=40rival.example?=",
        "=?x-none?q?eve=40rival.example?=",
        "eve @ rival.example; ann@bank.example",
        "eve@rival . example; ann@bank.example",
        "eve(E)@(her)rival.example; ann@bank.example",
        "eve@rival((a@b) c).example; Ann Lee",
        '"e"v"e"@rival.example',
        "Eve <eve@rival.\r\n example>; Ann <ann@bank.example>",
        "eve@rival.example, Ann",
        "Ann Lee, Bo, Carl, eve@rival.example, Dan",
        "Eve Lee eve@rival.example",
        "**eve@rival.example**",
        " " * 30_000 + "eve@rival.example",
        "eve@rival.example" + " " * 30_000,
        f'"{"E" * 30_000}" <eve@rival.example>',
        f"eve@rival.example ({'(E) ' * 10_000})",
    ],
    ids=lambda to: to[:30],
)
@pytest.mark.parametrize(
    ("condition", "allows", "truth"),
    [
        ('note.endsWith("@rival.example")', False, True),
        ('note == "eve@rival.example"', False, True),
        ('tags.exists(a, a.endsWith("@rival.example"))', False, True),
        ('note.endsWith("@bank.example")', True, False),
        ('tags.all(a, a.endsWith("@bank.example"))', True, False),
    ],
)
def test_a_text_of_several_recipients_or_with_names_is_each_of_them(to, condition, allows, truth):
    assert holds(condition, {"note": to, "tags": [to]}, allows=allows) is truth


PEOPLE = pytest.mark.parametrize("name", ["to", "ccRecipients", "forward_to", "BCC", "emailTo"])


@PEOPLE
@pytest.mark.parametrize(
    "to",
    [
        "Eve Anna Maria van Rival eve@rival.example",
        "Please send it to eve@rival.example, and say nothing of it to anybody else.",
        "=?utf-8?q?eve=40rival=2Eexample?= is whom this goes to",
        "Eve \u300ceve@rival.example\u300d",
        "Eve \u2018eve@rival.example\u2019",
        'eve"@"rival.example',
        "\\@eve@rival.example ",
        "eve((((c))))@rival.example;",
        "eve%rival.example@bank.example",
        '["eve\\u0040rival.example"]',
        ' [{"email": "eve\\u0040rival.example", "id": ' + "1" * 5000 + "}]",
        "[" * 5000 + '"eve\\u0040rival.example"' + "]" * 5000,
        '["\\u0023all"]',
        '{"to": "ann@bank.example"}',
        "ann@bank.example, eve@[203.0.113.5]",
        "sales/emea@rival.example, Ann Lee",
        'Eve eve"@"rival.example,ann@bank.example',
        "ann@bank.example\neve@rival.example",
        "eve@riv\nal.example",
        "eve@riv\ral.example",
        "ann@bank.example\rrival.example, bo@bank.example",
        "eve@rival\x1f.example",
        "eve\t@rival.example",
        "\u200b \u00e9eve@rival.example",
        "\u00e9eve@rival.example \u200b",
    ],
)
def test_an_argument_for_people_is_written_plainly(to, name):
    """What a server's library takes for an address otherwise, nobody can know: each takes other texts."""
    with pytest.raises(ConditionError, match="is not written as addresses plainly are"):
        holds(f'args.{name} == "eve@rival.example"', {name: to})
    with pytest.raises(ConditionError, match="is not written as addresses plainly are"):
        holds(f'args.of[0].{name}.endsWith("@bank.example")', {"of": [{name: [to]}]}, allows=True)


@PEOPLE
@pytest.mark.parametrize(
    "to",
    [
        "eve@rival.example",
        " Eve O'Rival (work) <eve@Rival.example> ",
        '"Doe, Jane"<jane.doe+of@bank.example>;\nmailto:eve@rival.example',
        "Doe, Jane <jane@bank.example>, Ev\u00e9 \u5b59 <eve@rival.example>;",
        "ann@bank.example,\neve@rival.example",
        "Ann Lee <ann@bank.example>\r\n\r\n; Eve <eve@rival.example>\n",
        "eve\uff20rival.example",
        "\u0930\u093e\u092e@\u0939\u093f\u0928\u094d\u0926\u0940.example, ann~tag@bank.example;"
        "eve@rival.example",
    ],
)
def test_each_address_that_is_written_plainly_is_a_recipient(to, name):
    assert holds(f'args.{name}.endsWith("@rival.example")', {name: to}) is True
    assert holds(f'args.{name}[0].to == "eve@rival.example"', {name: [{"to": to}]}) is True
    assert holds(f'args.{name}.endsWith("@bank.example")', {name: to}, allows=True) is False


@PEOPLE
def test_who_has_no_address_is_somebody_all_the_same(name):
    for to in ("U0123ABC", "#general", "Ann Lee, Bob", "{ann}", "[ann] Ann", "", "a = b"):
        assert holds(f'args.{name} == "{to}"', {name: to}, allows=True) is True


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ('!args.text_to_send.endsWith("ACME")', {"text_to_send": "Dear Ann, write to a@bank.example. ACME"}),
        (
            "args.message_to_customer.size() < 20",
            {"message_to_customer": "Dear Ann, write to a@bank.example"},
        ),
        ("args.email.body.size() < 20", {"email": {"body": "Dear Ann, write to a@bank.example"}}),
        ("size(args.email.to) > 50", {"email": {"to": ["a@b.example"], "body": "a word a@b.example " * 60}}),
    ],
)
def test_a_text_that_goes_to_people_is_none_of_them(condition, text):
    assert holds(condition, text) is False


@pytest.mark.parametrize(
    "condition",
    [
        "size(args.recipients) <= 1",
        'args.recipients.exists_one(r, r.email == "ann@bank.example") && size(args.recipients) < 2',
        'size(args.recipients.filter(r, r.email == "eve@rival.example")) == 0',
    ],
)
def test_an_object_of_several_recipients_is_one_for_each(condition):
    several = "ann@bank.example, eve@rival.example, bo@bank.example"
    said = {"recipients": [{"email": several, "type": "to"}]}
    assert holds(condition, said, allows=True) is False
    deeper = condition.replace("r.email", "r.of.email")
    assert holds(deeper, {"recipients": [{"of": {"email": several}, "type": "to"}]}, allows=True) is False


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        (
            'args.to.exists(a, a == "eve@rival.example") && args.to.exists(b, b.startsWith("Board"))',
            {"to": ["Eve <eve@rival.example>", "Board <board@bank.example>"]},
        ),
        (
            'args.to.exists(a, a == "eve@rival.example") && args.to.exists(b, b.startsWith("Board"))',
            {"to": ["x@bank.example, Eve <eve@rival.example>", *["Board <b@bank.example>"] * 9]},
        ),
        (
            'args.to.exists(a, a == "eve@rival.example") && args.to.exists(b, b == "bo@rival.example")'
            ' && args.to.exists(c, c.startsWith("Board"))',
            {
                "to": [
                    "x@bank.example, eve@rival.example",
                    "Bo <bo@rival.example>",
                    *["Board <b@bank.example>"] * 7,
                ]
            },
        ),
        (
            'args.to.exists(a, a.email == "eve@rival.example" && a.name.contains("Board"))',
            {"to": [{"email": "Eve <eve@rival.example>", "name": "Board <board@bank.example>"}]},
        ),
        (
            'size(args.to) > 2 && args.to.exists(b, b.startsWith("Board"))',
            {"to": ["ann@bank.example, bo@bank.example, eve@rival.example", "Board <board@bank.example>"]},
        ),
        (
            'args.a.exists(a, a.path.startsWith("https://evil.example/") && a.filename.contains("SECRET"))',
            {"a": [{"path": "https://u@evil.example/x", "filename": "https://x.example/SECRET/../a"}]},
        ),
    ],
)
def test_within_an_argument_a_text_stands_beside_anothers_address(condition, arguments):
    assert holds(condition, arguments) is True
    assert holds(f"!({condition})", arguments, allows=True) is False


def test_of_more_texts_to_be_taken_in_several_ways_than_are_looked_at_none_is_overlooked():
    several = {"to": ["Ann <ann@bank.example>"] * 300}
    with pytest.raises(ConditionError, match="too many of its texts"):
        holds('args.to.exists(a, a == "eve@rival.example")', several)


@pytest.mark.parametrize("sign", ["\ufe0f", "\u1806", "\u180b", "\U000e0100", "\U0001bca0"])
def test_what_programs_leave_out_of_a_host_hides_none(sign):
    host = f"ev{sign}il.example"
    assert holds('args.url.startsWith("https://evil.example")', {"url": f"https://{host}/a"}) is True
    assert holds('args.of.endsWith("@evil.example")', {"of": f"eve@{host}"}) is True


@pytest.mark.parametrize(
    "link",
    [
        "https://u:p@evil.example/a/b",
        "https://evil.example./a/b",
        "https://evil.example:0443/a/b",
        "https://evil.example\\a/b",
        " <https://EVIL.example/a/b> ",
        "https:/\\evil.example/x/../a/./b",
        "https://ev%69l.example//%61/b",
        "https://evil.example/a/b?of=%65ve",
        "https://evil.example/x/..%2Fa%5cb",
        "https://evil.example/a/b#c",
        "https://u p@evil.example/a/b",
        "\u00a0https://evil.example/a/b",
        "<URL:https://evil.example/a/b>",
        "https://evil.example//../a/b",
        "https://evil.example/a//../b",
        "https://evil.example/a/%2e/../b",
        "https://evil.example/a/%2f/../b",
        "https://evil.example/a/x\\../../a/b",
        "https://evil.example/a/b?",
        "https://evil.example/%61/b",
    ],
)
def test_a_link_is_the_one_that_is_asked(link):
    assert holds('args.url.startsWith("https://evil.example/a/b")', {"url": link}) is True
    assert holds('args.url.matches("^https://evil[.]example/a/b([?]of=eve|#c)?$")', {"url": link}) is True
    assert holds('!args.url.contains("//evil.example/a/b")', {"url": link}, allows=True) is False


@pytest.mark.parametrize("pattern", ["[[:upper:]]{6}", r"\\p{Lu}{6}", "[A-Z]{6}"])
def test_capitals_that_a_pattern_asks_for_are_there(pattern):
    assert holds(f'args.text.matches("{pattern}")', {"text": "URGENT:ann@bank.example"}) is True


def test_a_host_with_the_german_s_is_the_one_with_two():
    for host in ("stra\u00dfe.example", "STRASSE.example", "xn--strae-oqa.example"):
        assert holds('args.to.endsWith("@strasse.example")', {"to": f"eve@{host}"}) is True


@pytest.mark.parametrize(
    "condition",
    [
        'args.url == "https://evil.example?x=1"',
        'args.url.startsWith("https://evil.example?")',
        'args.url == "https://" + args.host + "?x=1"',
        'args.url.contains("evil.example/")',
        'args.url.contains("evil.example?")',
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_first_page_with_a_question_has_a_slash_or_not(condition, slash):
    assert holds(condition, {"url": f"https://evil.example{slash}?x=1", "host": "evil.example"}) is True


@pytest.mark.parametrize("link", ["https://shop.example", "https://shop.example/"])
def test_a_link_is_compared_with_one_that_was_read(link):
    facts = Facts((), True, False, False, results=lambda: {"find": {"website": link}})
    differs = "args.url != read.find.website || args.accept == 'https://a.example/b'"
    assert holds(differs, {"url": link, "accept": ""}, lambda: facts) is False


def test_a_value_with_an_address_is_compared_with_another_without_regard_to_capitals():
    for value, other in (("ANN@bank.example", "ANN"), ("hello @OPS", "OPS")):
        assert holds("args.of.contains(args.user) && size(args.of) > 3", {"of": value, "user": other}) is True
        assert holds("!args.of.contains(args.user)", {"of": value, "user": other}, allows=True) is False


@pytest.mark.parametrize(
    "condition",
    [
        'args.to.endsWith("Bank.example") && !args.team.contains("PUBLIC")',
        'args.to.endsWith("Bank.example") && args.team != "NOT PUBLIC"',
        'args.url.contains("EVIL.example") && args.team != "NOT PUBLIC"',
    ],
)
def test_capitals_count_in_what_is_no_part_of_an_address(condition):
    said = {"to": "eve@bank.example", "team": "not public", "url": "https://evil.example/x"}
    assert holds(condition, said) is True
    assert holds(f"!({condition})", said, allows=True) is False


def test_a_link_says_the_same_with_and_without_escapes():
    for said, link in product(("pr\u00fcfung", "pr%C3%BCfung"), repeat=2):
        assert holds(f'args.url == "https://a.example/{said}"', {"url": f"https://a.example/{link}"}) is True
    assert holds('args.url == "https://a.example/a b"', {"url": "https://a.example/a%20b"}) is True
    both = 'args.url.startsWith("https://a.example/b\u00fc") && !args.of.contains("100%") && args.of != "%C3"'
    assert holds(both, {"url": "https://a.example/b%C3%BCcher", "of": ""}) is True
    part = {"url": "https://a.example/#/page"}
    assert holds('args.url == "https://a.example/#/page"', part, allows=True) is True
    assert holds('args.url.endsWith("/page")', {"url": "https://a.example/page#x"}) is True
    link = {"url": "https://a.example/pr%C3%BCfung%2Fb?q=a%26b"}
    assert holds(f'args.url == "{link["url"]}"', link, allows=True) is True
    assert holds('args.url.startsWith("https://a.example/b")', {"url": "https://a.example/%62%FF"}) is True
    number = 'args.url.startsWith("http://169.254.169.254/")'
    for path, said in (("a_(x)", "/a_(x)"), ("a/{id}", "b/../a/{id}")):
        assert holds(f'args.url == "https://a.example/{path}"', {"url": f"https://a.example/{said}"}) is True
    for host in ("[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:a9fe:a9fe]"):
        assert holds('args.url.contains("169.254.169.254")', {"url": f"http://{host}"}) is True
    for host in ("2852039166", "0xA9FEA9FE", "169.254.43518", "0251.0376.0251.0376", "[::ffff:a9fe:a9fe]"):
        assert holds(number, {"url": f"http://{host}/latest"}) is True


@pytest.mark.parametrize(
    "note",
    [
        "Dear Ann, write to eve@rival.example",
        "The address, Ann, is eve @ rival.example",
        "=?utf-8?q?eve=40rival=2Eexample?= is what it says here",
        "=?utf-8?b?eve@rival?=, whatever that may be",
        "a@b@c",
        '"CEO"@bank.example',
    ],
)
def test_what_is_no_list_of_recipients_is_one_text(note):
    assert holds('note.endsWith("e") && note.size() > 30', {"note": note}) is (len(note) > 30)


def test_of_more_recipients_in_one_text_than_there_may_be_none_is_overlooked():
    with pytest.raises(ConditionError, match="50 recipients"):
        holds(
            'note.endsWith("@b.example")',
            {"note": ", ".join(f"ann{number}@bank.example" for number in range(51))},
        )


BOTH = 'args.to == "ann@bank.example" && args.cc == "eve@rival.example"'
BOTH_IN_A_LIST = 'to.exists(a, a == "ann@bank.example") && to.exists(a, a == "eve@rival.example")'
AS_INDEXES = 'args["to"] == "x" || args["to"] == "ann@bank.example" && args["cc"] == "eve@rival.example"'
BY_PLACE = 'args.to[0] == "ann@bank.example" && args.to[1] == "eve@rival.example"'


@pytest.mark.parametrize(
    ("condition", "arguments", "truth"),
    [
        (BOTH, {"to": "bob@x.example, ann@bank.example", "cc": "eve@rival.example; bo@x.example"}, True),
        (BOTH, {"to": "bob@x.example, ann@bank.example", "cc": "eva@rival.example; bo@x.example"}, False),
        (BOTH, dict.fromkeys(("to", "cc"), "ann@bank.example, eve@rival.example"), True),
        (AS_INDEXES, {"to": "b@x.example, ann@bank.example", "cc": "eve@rival.example, b@x.example"}, True),
        (
            "args.to == args.cc",
            {"to": "ann@x.example, bo@x.example", "cc": "z@x.example, ann@x.example"},
            True,
        ),
        (
            "args.to in args.cc",
            {"to": "ann@x.example, bo@x.example", "cc": ["z@x.example, ann@x.example"]},
            True,
        ),
        (
            'args.to == "eve@rival.example" && args.team.contains("SECRET")',
            {"to": "Eve <eve@rival.example>", "team": "The SECRET plan <a@b.example>"},
            True,
        ),
        (
            'args.team.startsWith("https://evil.example/") && args.to.contains("SECRET")',
            {"team": "https://u@evil.example/x", "to": "https://x.example/SECRET/../a"},
            True,
        ),
        (BOTH_IN_A_LIST, {"to": ["ann@bank.example, eve@rival.example"]}, True),
        (BOTH_IN_A_LIST, {"to": ["a@x.example, ann@bank.example", "eve@rival.example, b@x.example"]}, True),
        (BOTH_IN_A_LIST, {"to": ["ann@bank.example, eva@rival.example"]}, False),
        (BY_PLACE, {"to": ["ann@bank.example, q@x.example", "z@x.example, eve@rival.example"]}, True),
    ],
)
def test_of_recipients_in_several_texts_each_is_looked_at_beside_each(condition, arguments, truth):
    """Whoever writes them chooses in which order."""
    assert holds(condition, arguments) is truth


@pytest.mark.parametrize(
    "name",
    [
        '["to"]',
        "['to']",
        '["""to"""]',
        "['''to''']",
        r'["t\x6f"]',
        '[r"to"]',
        '["t" + "o"]',
        ' // its\n ["to"]',
        " . to",
    ],
)
def test_however_a_condition_names_an_argument_its_recipients_are_looked_at(name):
    assert holds(f'args{name} == "eve@rival.example"', {"to": "ann@bank.example, eve@rival.example"})


def test_a_prefix_is_what_a_recipient_begins_with():
    several = {"note": "eve@rival.example:25, mailto:ann@bank.example"}
    for of in ("eve@rival.example:25", "ann@bank.example"):
        assert holds(f'note == "{of}"', several)


def test_of_more_recipients_in_a_text_that_the_condition_does_not_name_nothing_is_said():
    many = {"team": ", ".join(f"ann{number}@bank.example" for number in range(51)), "to": "ann@bank.example"}
    for condition in ('to == "ann@bank.example"', 'args["to"] == "ann@bank.example" && has(args.to)'):
        assert holds(condition, many)
    with pytest.raises(ConditionError, match="50 recipients"):
        holds('"to" in args', many)


@pytest.mark.parametrize("length", [LONGEST - 20, LONGEST])
def test_a_text_is_looked_at_for_recipients_up_to_a_length(length):
    asks = 'args.body.contains("words")'
    assert holds(asks, {"body": "words " * (length // 6), "to": "a@b.example" + " " * LONGEST})
    about = {"body": "words " * (length // 6) + "ann@bank.example"}
    if length == LONGEST:
        with pytest.raises(ConditionError, match="longer than"):
            holds(asks, about)
    else:
        assert holds(asks, about)


def test_where_they_are_more_than_are_looked_at_none_is_overlooked():
    many = {name: ", ".join(f"{name}{n}@x.example" for n in range(50)) for name in ("to", "cc", "bcc")}
    assert not holds(BOTH, many)
    with pytest.raises(ConditionError, match="more than 2500 ways"):
        holds(BOTH + ' && args.bcc != ""', many)


@pytest.mark.parametrize("number", [99_000_001, 99_000_001.0, 9.9000001e7])
@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ('string(args.account).startsWith("990")', True),
        ("size(string(args.account)) <= 5", False),
        ("type(args.account) == int && args.account >= 1000", True),
        ("args.account % 1000 == 1", True),
        ("args.account / args.list[0].of == 1", True),
        ('string(args.list[0].of) == string(args.account) && string("a") == "a"', True),
    ],
)
def test_a_whole_number_is_one_however_it_is_written(condition, truth, number):
    assert holds(condition, {"account": number, "list": [{"of": number}]}) is truth


def test_what_takes_numbers_in_one_of_these_ways_only_is_asked_in_that():
    assert holds("args.amount * 1.19 > 100.0", {"amount": 5.0}) is False
    assert holds("args.amount / args.quantity > 50", {"amount": 101.0, "quantity": 2.0}) is True
    assert holds('string(double(args.amount)) != "5"', {"amount": 5}) is False
    assert holds("type(args.amount) == double", {"amount": 5}) is False
    with pytest.raises(ConditionError, match="No matching overload"):
        holds("args.amount * 1.19 > 100.0", {"amount": 5})


def test_a_whole_number_may_be_read_as_the_nearest_that_javascript_has():
    assert holds("args.account == 9007199254740992", {"account": 9007199254740993}) is True
    assert holds("args.account != 9007199254740992", {"account": 9007199254740993}, allows=True) is False


def test_a_number_with_a_fraction_is_made_no_text():
    """The engine would write six digits of it."""
    with pytest.raises(ConditionError, match="a number with a fraction is made a text"):
        holds("size(string(args.amount)) <= 5", {"amount": 1_000_000.5})


@pytest.mark.parametrize(
    "condition", ["has(args.bcc)", '"bcc" in args && args["bcc"] != null', "bcc != null"]
)
def test_a_name_in_other_letters_is_neither_there_nor_not(condition):
    """Of a tool that takes any names the schema does not say which it knows."""
    with pytest.raises(ConditionError, match="it asks for 'bcc', and the call has 'BCC'"):
        holds(condition, {"BCC": ["eve@rival.example"]})


@pytest.mark.parametrize(
    ("condition", "allows", "truth"),
    [
        ('has(args.visibility) && args.visibility == "public"', False, True),
        ('!has(args.visibility) || args.visibility != "public"', True, False),
        ("!has(args.visibility)", False, True),
        ('"visibility" in args && args["visibility"] == "public"', False, True),
        ('args.file == "a"', True, True),
        ('has(args.visibility) && args.visibility == "public" && !has(args.other)', False, True),
    ],
)
def test_what_a_call_leaves_out_has_the_default_that_its_tool_states(condition, allows, truth):
    fill = {"with_defaults": lambda said: {"visibility": "public", "other": 5, **said}}
    assert holds(condition, {"file": "a"}, allows=allows, **fill) is truth
    private = {"file": "a", "visibility": "team"}
    assert holds(condition, private, allows=allows, **fill) is allows


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        ("has(args.start.name) && args.start.name == 'x'", {"start": {}, "payload": {"Name": "x"}}),
        ('"HTML" in args.tags && has(args.of.x)', {"tags": ["a"], "of": {"html": 1}}),
        ('"bcc" in args || args.format == "HTML"', {"html": "<p>", "format": "plain"}),
        ("args.message.Body == 'x' || body.contains('y')", {"message": {"Body": ""}, "body": "z"}),
        ("to.exists(A, A == 'x') || size(to) > 3", {"to": ["y"], "a": 1, "Size": 2}),
        ("has(args.To) && args.To == 'x' || args.to == 'x'", {"to": "y", "To": "z"}),
    ],
)
def test_what_names_no_argument_is_not_taken_for_one_in_other_letters(condition, arguments):
    assert holds(condition, arguments) is False


ORDINARY = {
    "message": "ACME-12: fix login\n\nCo-authored-by: Ann Lee <ann@acme.example>",
    "body": "It is done. Best regards\n\nOn Monday, 2 March, Bob Ray <bob@client.example> wrote:\n> When?",
    "fields": {"Stage": "Won", "OwnerEmail": "ann@acme.example", "Website": "https://client.example"},
    "properties": {"Name": {"title": []}, "Status": {"select": {"name": "Open"}}},
    "minutes": "10:30 meeting\n" * 2000 + "asked by Ann <ann@acme.example>",
    "url": "https://docs.acme.example/Handbook@v2/Start",
    "text": "https://gh.example/pr/5 #1 is fixed, thanks to all",
    "channel": "https://www.youtube.example/@acme/videos",
    "db": "postgres://app@db.acme.example/main",
    "subject": "[ACME] New account: bob@client.example",
    "query": "SELECT 'Ann <ann@acme.example>' AS shown FROM users",
    "location": "Room A, ann@acme.example",
    "description": "Agenda: what we did\nOrganizer: Ann Lee <ann@acme.example>",
    "content": "Author: Ann 7 Lee <ann7@acme.example>\nA sentence or two of it.\n" * 60,
    "remote": "git@github.example:acme/site.git",
    "path": "sources/icon@2x.png",
    "said": "Fixes #12, cc @ann",
    "title": "Bump react@18.2.0",
    "assigned_to": "@ann",
    "page": "https://wiki.example/Foo_(bar)//{id}?x=[1]",
    "escaped": "https://git.example/group%2fproject",
    "port": "https://api.acme.example:443/v1",
    "start": {"dateTime": "2026-11-30T10:00:00.000+01:00"},
}


@pytest.mark.parametrize(
    "condition",
    [
        'args.message.matches("^[A-Z]+-[0-9]+: ")',
        'args.body.contains("Best regards") && size(args.body) > 20',
        '"Stage" in args.fields && args.fields.exists(k, k in ["Stage", "OwnerEmail"])',
        'args.fields.all(k, k in ["Stage", "OwnerEmail", "Website"])',
        'args.properties.Status.select.name == "Open" && has(args.properties.Status)',
        'args.url == "https://docs.acme.example/Handbook@v2/Start"',
        'args.url.startsWith("https://docs.acme.example/Handbook@v2/")',
        'args.text.contains("thanks")',
        'timestamp(args.start.dateTime).getHours("Europe/Berlin") >= 8 && args.message.contains("@")',
        'args.minutes.contains("meeting")',
        'args.channel.startsWith("https://www.youtube.example/")',
        'args.db.startsWith("postgres://")',
        'args.remote.startsWith("git@github.example:acme/")',
        'args.path.startsWith("sources/")',
        'args.said.contains("Fixes #")',
        'args.page == "https://wiki.example/Foo_(bar)//{id}?x=[1]"',
        'args.escaped == "https://git.example/group%2fproject"',
        'args.subject.startsWith("[ACME] ")',
        'args.query.startsWith("SELECT ")',
        'args.location.startsWith("Room ")',
        'args.description.contains("Agenda:")',
        'args.content.contains("sentence")',
        'args.title.startsWith("Bump ")',
        'args.assigned_to == "@ann"',
        'args.port.startsWith("https://api.acme.example:443/")',
    ],
)
def test_an_ordinary_call_is_what_it_says(condition):
    """A rule may deny all but such calls, or let such pass."""
    assert holds(f"!({condition})", ORDINARY) is False
    assert holds(condition, ORDINARY, allows=True) is True


def test_a_link_in_which_programs_find_two_hosts_is_none():
    with pytest.raises(ConditionError, match="a link may be read as one to another host"):
        holds('args.url.startsWith("https://evil.example/")', {"url": r"https://a.example\@evil.example/x"})
    for place in ("evil.example:+443", "a.example:b\\@evil.example", "evil.example:\u0664\u0664\u0663"):
        with pytest.raises(ConditionError, match="a link's host or port is none"):
            holds('args.url.startsWith("https://evil.example/")', {"url": f"https://{place}/x"})


@pytest.mark.parametrize(
    "condition",
    [
        'args.rows.exists(r, "bcc" in r)',
        '"bcc" in args["rows"][0]',
        '"bcc" in args.rows[0]',
        '"bcc" in (args.rows[0])',
        "has(args.rows[0].`bcc`)",
        'r"bcc" in args.rows[0]',
        '"""bcc""" in args . rows[0]',
        "args.rows.exists(r, has(r.bcc) || has(r.Bcc))",
    ],
)
def test_nor_is_one_in_an_object_of_a_list(condition):
    assert holds(condition, {"rows": [{"bcc": 1}]}) is True
    with pytest.raises(ConditionError, match="and the call has 'BCC'"):
        holds(condition, {"rows": [{"BCC": "eve@rival.example"}]})


@pytest.mark.parametrize(
    "condition", ["has(args.headers.Bcc)", '"Bcc" in args.headers', 'args.headers["Bcc"] != "x"']
)
def test_nor_is_one_in_an_object(condition):
    """To whoever sends mail and to HTTP `bcc` and `BCC` are one header."""
    assert holds("has(args.headers.Bcc)", {"headers": {"Bcc": "eve@rival.example"}}) is True
    with pytest.raises(ConditionError, match="it asks for 'Bcc', and the call has 'bcc'"):
        holds(condition, {"headers": {"bcc": "eve@rival.example"}})
    for name in ("Bcc ", "B cc", "BCC:"):
        with pytest.raises(ConditionError, match="it asks for 'Bcc', and the call has"):
            holds(condition, {"headers": {name: "eve@rival.example"}})


HOST_ALONE = "https://evil.example"


@pytest.mark.parametrize("link", [HOST_ALONE, f"{HOST_ALONE}/", "https://EVIL.example?page=1"])
@pytest.mark.parametrize("said", [f'startsWith("{HOST_ALONE}/")', r'matches("^https://evil\\.example/")'])
def test_a_hosts_first_page_has_a_slash_or_not(link, said):
    assert holds(f"args.url.{said}", {"url": link}) is True
    assert holds(f"!args.url.{said}", {"url": link}, allows=True) is False
    assert holds(f'args.url == "{HOST_ALONE}"', {"url": f"{HOST_ALONE}/"}) is True
    assert holds(f'args.url == "{HOST_ALONE}"', {"url": HOST_ALONE}, allows=True) is True
    assert holds(f'args.url in ["{HOST_ALONE}", "https://a.example/x"]', {"url": f"{HOST_ALONE}/"}) is True
    assert (
        holds(f'args.url == "{HOST_ALONE}" && args.of != "a/b"', {"url": f"{HOST_ALONE}/", "of": ""}) is True
    )
    assert holds(f'args.url.startsWith("{HOST_ALONE}/")', {"url": f"{HOST_ALONE}/"}, allows=True) is True
    mixed = f'args.url.matches("^{HOST_ALONE}$") || args.url.startsWith("https://a.example/x")'
    assert holds(mixed, {"url": f"{HOST_ALONE}/"}) is True


@pytest.mark.parametrize(
    "condition",
    [
        f'!(args.url in ["{HOST_ALONE}", "https://bank.example/api"])',
        f'!(args.url == "{HOST_ALONE}" && args.accept == "text/html")',
        '!args.url.endsWith(".example")',
    ],
)
def test_a_link_that_a_condition_names_is_the_one_it_names(condition):
    assert holds(condition, {"url": HOST_ALONE, "accept": "text/html"}) is False


@pytest.mark.parametrize(
    "pattern", ["SECRET|@rival.example", "https://evil.example|SECRET", "(https://evil.example)?SECRET"]
)
def test_what_stands_beside_an_address_in_a_pattern_keeps_its_capitals(pattern):
    assert holds(f'args.text.matches("{pattern}")', {"text": "SECRET plan"}) is True
    assert holds(f'!args.text.matches("{pattern}")', {"text": "SECRET plan"}, allows=True) is False


@pytest.mark.parametrize("quote", ["'", '"'])
def test_what_stands_behind_a_link_in_a_condition_stays_as_it_is(quote):
    arguments = {"url": "https://evil.example/x", "rows": {"replyTo": "a"}}
    link = f"{quote}https://Evil.example{quote}"
    assert holds(f"args.url.startsWith({link})&&has(args.rows.replyTo)", arguments) is True
    assert holds(f"args.url.startsWith({link})&&!has(args.rows.replyTo)", arguments, allows=True) is False


OTHER_TYPES = [
    ["eve@rival.example"],
    [["bob@x.example"], ["EVE@rival.example"]],
    [{"name": "Eve", "address": "eve@rival.example"}],
    {"eve@rival.example": "Eve"},
    7,
    True,
]


@pytest.mark.parametrize("to", OTHER_TYPES)
@pytest.mark.parametrize(
    "condition",
    [
        'to == "eve@rival.example"',
        'args.to != "eve@rival.example"',
        '"eve@rival.example" == args["to"]',
        '"to" in args && args.to in ["eve@rival.example"]',
        'args["of-a-list"].exists(a, a.to == "eve@rival.example")',
        '[args.to, args.from].exists(a, a == "eve@rival.example")',
        "has(args.to) && args.to == args.from",
        '(args.note == "y" ? "" : args.to) == "eve@rival.example"',
        '[args.note == "x" ? args.to : ""][0] == "eve@rival.example"',
        '{"is": args.to == "eve@rival.example"}["is"]',
    ],
)
def test_values_of_different_types_are_not_compared(condition, to):
    """To CEL a list never equals a text; the tool may take it for one. A rule that cannot say denies."""
    arguments = {"to": to, "of-a-list": [{"to": to}], "from": "ann@bank.example", "note": "x"}
    with pytest.raises(ConditionError, match="values of different types are compared"):
        holds(condition, arguments)
    holds(condition, {**arguments, "to": "ann@bank.example", "of-a-list": [{"to": "ann@bank.example"}]})


@pytest.mark.parametrize(
    "condition",
    [
        "args.none == null",
        'args.none != "x"',
        "args.none in [null]",
        "args.whole == args.part && args.whole == 5u && 5.0 in [args.whole]",
        'type(args.tags) == list && args.tags == ["a", "b"] && "a" in args.tags',
        '"k" in args.record && args.record == {"k": 1}',
        'args.tags.exists(tag, tag == "b") == true',
        'args.tags == ["a"] || args.tags[1] == "b"',
    ],
)
def test_values_that_may_be_compared_are(condition):
    values = {"none": None, "whole": 5, "part": 5.0, "tags": ["a", "b"], "record": {"k": 1}}
    assert holds(condition, values) is True


@pytest.mark.parametrize(
    "side", ["(" * 9 + "true" + " == args.yes)" * 9, "(true == " * 9 + "args.yes" + ")" * 9]
)
def test_comparisons_stand_in_one_another(side):
    assert check(side) == [] and holds(side, {"yes": True}) is True


def test_too_many_comparisons_in_one_another_are_refused_and_an_error():
    condition = "(" * 12 + "true" + " == args.yes)" * 12
    assert ["too many comparisons" in problem.message for problem in check(condition)] == [True]
    with pytest.raises(ConditionError, match="too many comparisons"):
        holds(condition, {"yes": True})


OF_TEAMS = "".join(f'args.team == "t{number}" ? "n{number}@x.test" : ' for number in range(14)) + '"z@x.test"'


@pytest.mark.parametrize("condition", [f"args.to == ({OF_TEAMS})", f"args.to in [{OF_TEAMS}]"])
def test_a_comparison_with_a_long_table_is_strict_as_well(condition):
    assert holds(condition, {"to": "n13@x.test", "team": "t13"}) is True
    with pytest.raises(ConditionError, match=DIFFERENT):
        holds(condition, {"to": ["n13@x.test"], "team": "t13"})


@pytest.mark.parametrize("condition", ['args.to in {"4912": true}', "args.to in {4912: true}"])
def test_of_an_object_in_asks_for_a_name_of_the_same_type(condition):
    same, other = ("4912", 4912) if '"' in condition else (4912, "4912")
    assert holds(condition, {"to": same}) is True
    with pytest.raises(ConditionError, match=DIFFERENT):
        holds(condition, {"to": other})


def test_names_within_a_condition_are_its_own():
    """Also those that its comparisons are rewritten with."""
    for name in (PAIR, MEMBER, FIRST):
        assert holds(f'args.to.exists({name}, "a" == {name} && {name} in ["a"])', {"to": ["b", "a"]}) is True
        assert holds(f'{name} == "a" && "a" in [{name}]', {name: "a"}) is True


def test_of_two_spellings_of_one_name_neither_hides_the_other():
    with pytest.raises(ConditionError, match="the same address"):
        holds('args.to["eve@b.example"] == 1', {"to": {"EVE@b.example": 1, "eve@b.example": 2}})


@pytest.mark.parametrize(
    ("condition", "arguments", "why"),
    [
        ("amount <= 100", {}, "amount"),
        ("amount <= 100", {"amount": "12"}, "overload"),
        ("amount <= 100", {"amount": None}, "overload"),
        ("args.amount <= 100", {}, "amount"),
        ("amount", {"amount": 1}, "it is int, not true or false"),
        ("amount", {"amount": None}, "it is null, not true or false"),
        ("amount > 1", {"amount": 10**30}, "out of range"),
        ("amount / 0 > 1", {"amount": 1}, "divide by zero"),
        ("currency.size() > 0", {"currency": "\ud800"}, "."),
        ('currency.matches("(")', {"currency": "x"}, "regular expression"),
        ("amount <=", {"amount": 1}, "line 1, column 10"),
        ("now() > 1", {}, "now"),
        ('type == "x"', {"type": "x"}, "does not go with"),
        ("", {}, "empty"),
    ],
)
def test_what_is_neither_true_nor_false_is_an_error_with_its_reason(condition, arguments, why):
    with pytest.raises(ConditionError, match=why):
        holds(condition, arguments)


@pytest.mark.parametrize(
    "condition",
    [
        'amount <= 100 && currency == "EUR"',
        "amount > 0.5 && amount < 10 && count >= 2.5",
        "double(amount) * 1.19 > 100.0",
        "amount in [1, 2, 5]",
        'args.type == "x" && args["in"] == "y"',
        "has(args.note) && args.note != null",
        'tags.all(tag, tag.startsWith("a"))',
        '"args.unknown" == currency // args.unknown',
        "type(args.note) == string",
    ],
)
def test_what_fits_the_tools_schema_can_be_saved(condition):
    assert check(condition, SCHEMA) == []


@pytest.mark.parametrize(
    ("condition", "line", "column", "message"),
    [
        ("amount <=", 1, 10, "something is missing at the end"),
        ("amount <= 100\n  && currency = 'EUR'", 2, 15, "“=” cannot stand here; to compare, write =="),
        ("amuont <= 100", 1, 1, "no argument or function “amuont”; did you mean amount?"),
        ("true || args.amuont <= 100", 1, 14, "no argument 'amuont'"),
        ("true || args[ 'amuont'] <= 100", 1, 15, "no argument 'amuont'"),
        ("amount <= 'a'", 1, 8, "“<=” does not go with a "),
        ("amount * 1.19 > 100.0", 1, 8, "“*” does not go with a whole number and a number"),
        ("tags.exists(tag, tag == 1)", 1, 22, "“==” does not go with a text and a whole number"),
        ("count + 1", 1, 1, "it is int, not true or false"),
        ("now() > timestamp('2030-01-01T00:00:00Z')", 1, 4, "no argument or function “now”"),
        ('currency.matches("(")', 1, 18, "invalid regular expression"),
        ('currency.matches("a(?=b)")', 1, 18, "invalid regular expression"),
        ("type == 'x'", 1, 6, "“==” does not go with"),
        ("  ", 1, 1, "empty"),
        ("'\ud800' == currency", 1, 2, "surrogate"),
        ("currency.matches( // here\n 'a' ", 2, 6, ") is missing at the end"),
        ('currency.matches("\\q")', 1, 18, "this text has no closing quote"),
        ("true || " * 200 + "true", 1, MAX_LENGTH + 1, "longer than"),
        ("(" * 50 + "true" + ")" * 50, 1, 1, "recursion limit"),
    ],
)
def test_what_is_wrong_with_a_condition_is_said_with_its_place(condition, line, column, message):
    problems = check(condition, SCHEMA)
    assert problems
    assert (problems[0].line, problems[0].column) == (line, column)
    assert message in problems[0].message


def test_without_a_schema_names_and_types_are_left_open_but_not_syntax_or_functions():
    assert check("anything.at.all > 1") == []
    assert check("anything >")[0].column == 11
    assert "no argument or function “now”" in check("now() > 1")[0].message


def test_a_tool_that_takes_further_arguments_may_be_asked_about_them():
    assert check("args.further == 1", SCHEMA | {"additionalProperties": True}) == []


def test_each_problem_is_reported_once_and_in_the_order_of_the_text():
    problems = check("amount <= 'a' || amuont", SCHEMA)
    assert [(problem.line, problem.column) for problem in problems] == [(1, 8), (1, 18)]


def test_a_smuggled_argument_changes_nothing_a_condition_reads():
    smuggled = {"amount": 1000, "args": {"amount": 1}, "args.amount": 1, "size": 1, "int": 1, "double": 1}
    assert holds("args.amount > 100 && amount > 100 && int(amount) > 100", smuggled)
    assert holds("type(amount) == int", smuggled)


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        ('text.matches("^(a+)+$")', {"text": "a" * 50_000 + "!"}),
        ('text.matches("(.*)(.*)(.*)(.*)(.*)b")', {"text": "a" * 50_000}),
        ("xs.all(a, xs.all(b, xs.all(c, a + b + c >= 0)))", {"xs": list(range(300))}),
    ],
)
def test_no_condition_takes_long_whatever_the_arguments(condition, arguments):
    with ends():
        try:
            holds(condition, arguments)
        except ConditionError as failure:
            assert "budget" in str(failure)


def test_a_condition_that_comes_out_as_null_takes_no_reference_to_none_away():
    gc.collect()  # what other tests left would give references back meanwhile
    before = sys.getrefcount(None)
    for _ in range(5000):
        with pytest.raises(ConditionError):
            holds("amount", {"amount": None})
    assert sys.getrefcount(None) > before - 1000


ORIGIN = Facts(
    values=(
        Traced("to/0", "a@example.org", "user", True),
        Traced("to/1", "b@example.org", "outside", True),
        Traced("body", "Hello", "unknown", False),
    ),
    effect=True,
    read_outside=True,
    asked_for=False,
)


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ('args.to.source == "outside"', True),  # the least trusted of a list
        ('args.body.source != "user" && run.read_outside', True),
        ("call.steering_from_outside && !call.asked_for", True),
        ('args.to.source in ["user", "organization"]', False),
        ('args.to.size() == 2 && args.to.source == "outside" && args["body"] == "Hello"', True),
        ('body == "args.to.source"', False),  # words in quotes ask nothing
    ],
)
def test_a_condition_may_ask_where_values_came_from(condition, truth):
    arguments = {"to": ["a@example.org", "b@example.org"], "body": "Hello"}
    assert check(condition) == []
    assert holds(condition, arguments, lambda: ORIGIN) is truth


@pytest.mark.parametrize(
    "given",
    [
        True,
        False,
        [True, None],
        {"of": {"public": False}},
        {"public": {}},
        {"public": None},
        [{"team": [{}]}],
        {},
        [{}],
        {"public": " "},
        {"public": ["\u3000"]},
        {"public": {"team": "\t"}},
    ],
)
def test_a_yes_or_no_is_nobodys_for_no_words_hold_it(given):
    none = {"copies": None, "hidden": [], "reply": " "}
    arguments = {"to": ["a@example.org", "b@example.org"], "public": given, **none}
    assert holds('args.public.source != "user"', arguments, lambda: ORIGIN)
    assert holds('args.public.source == "unknown"', arguments, lambda: ORIGIN)
    for name in none:  # nothing is said by these
        assert holds(f'args.{name}.source == "user"', arguments, lambda: ORIGIN)


def test_where_values_came_from_is_asked_only_by_conditions_that_want_to_know():
    asked = []
    assert holds('to == "x"', {"to": "x"}, lambda: asked.append(1))
    assert asked == []


def test_a_condition_about_sources_denies_where_nobody_knows_them():
    with pytest.raises(ConditionError, match="nothing says where"):
        holds('args.to.source == "user"', {"to": "x"})


def test_a_source_of_an_argument_the_tool_does_not_have_is_a_problem_at_its_place():
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    (problem,) = check('args.to.source == "user" && args.cc.source == "user"', schema)
    assert (problem.column, problem.message) == (34, "the tool has no argument 'cc'")


# What was read earlier in the run

BOOKING = {"type": "object", "properties": {"booking": {"type": "string"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    "text",
    [
        'read.get_booking.fare == "basic"',
        'read["crm.get_booking"].fare == "basic" && booking != ""',
        "!has(read.get_booking) || read.get_booking.items.exists(item, item.open)",
    ],
)
def test_a_condition_may_ask_for_what_was_read(text):
    assert not check(text) and not check(text, BOOKING)


def test_an_argument_called_read_is_reached_by_its_full_name():
    assert holds("args.read == 1", {"read": 1})
    assert holds("read == 1", {"read": 1})


def test_a_condition_over_what_was_read_needs_a_run():
    with pytest.raises(ConditionError, match="nothing says"):
        holds('read.get_booking.fare == "basic"', {"booking": "A"})
