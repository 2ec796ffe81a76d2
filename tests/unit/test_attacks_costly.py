"""Ways to keep Deputy busy, so that others wait."""

import contextlib
import re
import time
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from django.template import Context, Template

from common import lookalikes, text
from common.api import parsers
from common.api.errors import Problem
from common.canonical import canonical
from common.normal_forms import normalized
from groups.sign_in import pace
from memory import likeness, substance
from policy import apart
from policy.conditions import ConditionError, check, holds
from policy.provenance import choice, confidential, forms, intent, trace
from policy.provenance import words as provenance_words
from policy.provenance.infer import Declaration, infer
from policy.provenance.terms import MORE
from policy.provenance.texts import MOST_PASSAGES
from policy.provenance.trace import Material
from runs.context import messages
from runs.deciding import compare, words
from runs.notices import message
from runs.outbound import calls
from runs.providers import local_mail
from runs.tools import registry
from runs.tools.base import Tool
from runs.tools.call import check_arguments
from runs.tools.mcp.definitions import checker

ROOT = Path(__file__).resolve().parents[2]
NORMALIZES = re.compile(r"unicodedata\.normalize|import normalize\b")
MUCH_LESS = 15  # seconds of a processor, where a time that grows with the square takes minutes
CHOICES = {"type": "array", "items": {"anyOf": [{"const": number} for number in range(3000)]}}
DIFFERENT = {"type": "array", "uniqueItems": True}


def outsiders(schema):
    parameters = {"type": "object", "properties": {"items": schema}}
    return Tool("shop.order", "Orders.", parameters, lambda *_: None, checker=checker)


def test_arguments_that_take_too_long_to_check_are_refused():
    last = [2999] * 4000  # each of them is compared with all choices, twelve million times together
    refused = check_arguments(outsiders(CHOICES), {"items": last})
    assert refused.code == "INVALID_ARGUMENTS" and "too long" in refused.message


def test_many_different_objects_are_looked_at_once_each():
    many = [{"number": number} for number in range(20_000)]
    assert check_arguments(outsiders(DIFFERENT), {"items": many}) is None
    twice = check_arguments(outsiders(DIFFERENT), {"items": [*many, {"number": 7}]})
    assert "the same item twice" in twice.message


def test_of_a_hundred_thousand_mistakes_some_are_told():
    arguments = {"to": [1] * 100_000, "subject": "s", "body": "b"}
    refused = check_arguments(registry.get("send_email"), arguments)
    assert len(canonical(refused.details)) < 10_000 and "/to/0" in refused.message


def test_texts_of_a_few_words_ten_thousand_times_are_not_compared_word_by_word():
    """Python's comparison takes minutes for them: nothing of them is marked, and both are shown whole."""
    was, now = "a\nb\n" * 4_000, "b\na\na\n" * 2_700
    (line,) = words.marked([words.Line("body", now)], [words.Line("body", was)])
    assert (line.text, line.mark, line.pieces) == (now, "", ())
    (short,) = words.marked([words.Line("body", "one two three four")], [words.Line("body", "one two three")])
    assert ("same", "one two ") in short.pieces


@pytest.mark.parametrize(
    "body",
    [
        "{" + "".join(f'"{number:x}":1,' for number in range(90_000)) + '"15f8f":1}',
        '{"' + "k" * 1_000_000 + '":[' + "1," * 480_000 + "1]}",
    ],
    ids=["a key that comes twice", "a key as long as half of the body"],
)
def test_a_body_of_a_megabyte_is_read_or_refused_at_once(body):
    """Each held its process for half a minute to some minutes."""
    began = time.process_time()
    with contextlib.suppress(Problem):
        parsers.read(body.encode())
    assert time.process_time() - began < MUCH_LESS


MARKS = "a" + "\u0315" * 120_000 + "\u0300" * 120_000


@pytest.mark.parametrize(
    "read",
    [
        text.terms,
        text.is_chinese,
        lookalikes.as_seen,
        lookalikes.skeleton,
        forms.clean,
        lambda marks: list(forms.leads(f"https://{marks}/")),
        provenance_words.normalise,
        provenance_words.is_plain,
        pace.account,
        lambda marks: compare.host_of(f"https://{marks}/"),
        lambda marks: calls.tool_host("http_get", {"url": f"https://{marks}/"}),
        lambda marks: Template("{{ marks|truncatechars:90 }}").render(Context({"marks": marks})),
    ],
)
def test_a_letter_with_thousands_of_marks_is_read_at_once(read):
    """Each held its whole process for minutes: the time grew with the square of the marks."""
    began = time.process_time()
    read(MARKS)
    assert time.process_time() - began < MUCH_LESS


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (messages.sections, " " * 50_000 + "*" * 50_000 + "x"),
        (substance.title, "It is" + "\n" * 100_000 + "so."),
        (substance.says_something, "It is" + "\n" * 100_000 + "so."),
        (message._targets, "a" * 100_000),
        (lambda said: list(confidential.in_text(said)), "-eyJ" * 100_000),
        (provenance_words.is_place, "." * 100_000 + " so"),
        (intent.commands, "\u2018" * 100_000),
        (intent.commands, "\u300a" * 100_000),
        (local_mail.addresses, "a" * 100_000),
        (lambda said: likeness.alike(f"how c {said} d", f"{said} c d how"), "b " * 99_000),
    ],
    ids=[
        "blanks and stars before no decision",
        "empty lines in a memory",
        "empty lines in what a group leaves",
        "a recipient that is no address",
        "beginnings of a key",
        "points that are no place",
        "quotations that nobody ends",
        "titles that nobody ends",
        "what is no address in a goal",
        "questions of one word",
    ],
)
def test_what_looks_like_a_beginning_a_hundred_thousand_times_is_read_at_once(read, said):
    """Each held its whole process for minutes to hours: a pattern read the rest anew from each beginning."""
    began = time.process_time()
    read(said)
    assert time.process_time() - began < MUCH_LESS


def test_a_hundred_values_that_stand_in_one_long_text_are_traced_at_once():
    """Where each stands was counted anew, letter by letter: a second for each value and megabyte."""
    numbers = [f"é{number}" for number in range(160_000)]
    material = Material()
    material.read("1", Declaration(), {"page": "orders"}, {"text": " ".join(numbers)})
    began = time.process_time()
    facts = material.facts(Declaration(deeds=frozenset(["send"])), {"to": numbers[:150]})
    assert {value.trust for value in facts.values} == {"outside"}
    assert time.process_time() - began < MUCH_LESS


def test_thousands_of_addresses_in_one_text_are_not_each_looked_for_in_thousands_of_fields():
    material = Material()
    material.read("1", Declaration(), {"page": "people"}, ["ann@example.org"] * 1_500)
    began = time.process_time()
    facts = material.facts(Declaration(content=frozenset(["body"])), {"body": "ann@example.org " * 6_000})
    assert facts.values[-1].value == MORE and facts.values[-1].trust == "unknown"
    assert time.process_time() - began < MUCH_LESS


SEND = infer("send_email", "", {"properties": {"recipients": {}, "subject": {}, "body": {}}})
LIST = infer("list_contacts", "", {"properties": {}})
ROWS = 2_000


def counted(monkeypatch, *what):
    """How often each of these functions, (module or class, name), is called."""
    found = Counter()

    def count(owner, name):
        own = getattr(owner, name)

        def counting(*given, **named):
            found[name] += 1
            return own(*given, **named)

        monkeypatch.setattr(owner, name, counting)

    for owner, name in what:
        count(owner, name)
    return found


def read_much(said, row):
    material = Material()
    material.hear("1", said)
    material.overhear("2", "A stranger's words that are long enough to count")
    material.read("3", LIST, {}, [row(number) for number in range(ROWS)])
    return material


@pytest.mark.parametrize(
    "said",
    [
        "Email the cheapest of the contacts",
        "Email the contact who wrote most often",
        "Email all contacts except Zoe",
        "Email bob",
    ],
)
def test_a_value_of_thousands_of_records_is_weighed_at_some_of_them(said, monkeypatch):
    """What a person chooses by was looked for anew in all records for each of them, and for each value:
    quarters of an hour for a thousand records and fifty values.
    """
    found = counted(monkeypatch, (Material, "_judged"), (choice, "measures"), (choice, "_commonest"))
    material = read_much(said, lambda number: {"name": "bob", "email": "a@example.com", "price": number})
    material.facts(SEND, {"recipients": ["a@example.com"] * 50})
    assert 0 < found["_judged"] <= 50 * MOST_PASSAGES
    assert found["measures"] <= 1 and found["_commonest"] <= 1


@pytest.mark.parametrize("value", ["blue team", " ".join("abc" * 10) + " b a", "b"])
def test_a_call_of_many_values_is_looked_for_in_so_many_texts_and_the_rest_is_unknown(value, monkeypatch):
    """Each value and each of its words was looked for in every text that has it: minutes for one call."""
    found = counted(monkeypatch, (trace, "standing_alone"))
    monkeypatch.setattr(trace, "MOST_LOOKS", 20_000)
    material = read_much("Email team", lambda number: {"text": f"a b c {number} team blue b a{number}"})
    facts = material.facts(SEND, {"recipients": [f"{value} {number % 7}" for number in range(200)]})
    assert facts.values[-1].value == MORE and facts.doubtful
    assert found["standing_alone"] <= 20_000


def test_the_persons_word_counts_however_often_others_repeat_it():
    material = read_much("Look", lambda number: {"text": "write to ann@example.com"})
    material.hear("4", "Email ann@example.com the list")
    ann = "ann@example.com"
    assert material.facts(SEND, {"recipients": ann}).source("recipients", ann) == "user"


def test_what_is_looked_up_by_more_values_than_are_looked_at_is_from_outside():
    material = read_much("Look up ann", lambda number: {"name": f"bob{number}"})
    names = [*["ann"] * 250, "bob7"]
    for number, few in enumerate((names[:5], names)):
        material.read(f"{number + 4}", LIST, {"names": few}, [{"email": f"a{number}@example.com"}])
    pieces = {piece.name: piece.keys for piece in material.pieces}
    assert (pieces["4"], pieces["5"]) == ("user", "outside")


def test_only_one_module_asks_for_normal_forms():
    folders = ("common", "config", "groups", "memory", "policy", "runs")
    modules = [module for folder in folders for module in (ROOT / folder).rglob("*.py")]
    asking = {str(module.relative_to(ROOT)) for module in modules if NORMALIZES.search(module.read_text())}
    assert asking == {"common/normal_forms.py"}


def test_what_people_write_has_the_forms_that_unicode_gives_it():
    for each in ("e\u0301", "\ufb01ne", "\u1e9b\u0323", "Z" + "\u0323\u0300" * 15, "\u0f73\u0f71"):
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            assert normalized(form, each) == unicodedata.normalize(form, each)


TWICE = "[[1]]" + ".map(a, [a, a])" * 24 + ".all(a, a == a)"
LONGER = '["eight..."]' + ".map(a, a + a)" * 26 + "[0].size() > 0"
TEXTS = "args.numbers.all(n, (args.text + args.text + args.text + args.text).size() > n)"


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        (TWICE, {}),
        (LONGER, {}),
        (TEXTS, {"numbers": list(range(1000)), "text": "a" * 500_000}),
        (TWICE.replace("all(", "all // to whoever looks for brackets\n("), {}),
    ],
    ids=["compared", "longer", "texts", "with a comment"],
)
def test_a_rule_that_would_take_hours_or_gigabytes_is_an_error_and_holds_nobody_up(condition, arguments):
    """The engine counts iterations, and lets no other thread run meanwhile."""
    assert check(condition) == []
    with pytest.raises(ConditionError, match="too much time or memory"):
        holds(condition, arguments)
    assert holds('text.matches("^a+$")', {"text": "aaa"})


def test_what_one_decision_or_request_asks_has_a_time_together():
    with apart.allowance(10), apart.allowance(0.2):
        with pytest.raises(ConditionError, match="too much"):
            holds(TWICE, {})
        with pytest.raises(ConditionError, match="before it took the time"):
            holds('text.matches("a")', {"text": "a"})
        assert holds('text == "a"', {"text": "a"})  # what is sure to be quick is evaluated all the same
    with apart.allowance(10):
        assert holds('text.matches("a")', {"text": "a"})


@pytest.mark.parametrize("condition", ["size(text) > 0", 'text.exists(each, each == "a")'])
def test_what_is_nested_too_deeply_is_an_error_of_the_condition(condition):
    deep = []
    for depth in range(5000):
        deep = [deep]
        if depth in (100, 300, 500, 700, 900):
            with contextlib.suppress(ConditionError):  # which some are, by how deep Python itself is by then
                assert holds(condition, {"text": deep}) in (True, False)
    with pytest.raises(ConditionError, match="nested"):
        holds(condition, {"text": deep})


def test_what_is_sure_to_be_quick_asks_no_other_process(monkeypatch):
    monkeypatch.setattr(apart, "truth", None)
    assert holds(
        'to.all(each, each.endsWith("@example.org"))', {"to": ["a@example.org"], "body": "a" * 10**6}
    )
    assert holds('body.startsWith("a") && body.size() > 3', {"body": "a" * 1000})
    for heavy in ({"body": "a" * 100_000}, {"body": ["a" * 100_000]}, {"body": {"a" * 100_000: 1}}):
        with pytest.raises(TypeError):
            holds("body.size() > 0", heavy)
