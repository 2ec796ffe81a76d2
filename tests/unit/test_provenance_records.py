"""Which record a run has read is the one that a call is about."""

import pytest

from policy.provenance import records
from policy.provenance.infer import infer
from policy.provenance.trace import Material


def test_what_the_tools_schema_does_not_have_chooses_no_record():
    text = {"type": "string"}
    find, refund = (
        infer(name, f"{name} an order.", {"type": "object", "properties": dict.fromkeys(parts, text)})
        for name, parts in (("find_order", ("order", "ref")), ("refund_order", ("order",)))
    )
    deep = {"properties": {"order": text, "how": {"type": "object", "properties": {"ref": text}}}}
    refund_how = infer("refund_order", "Refund an order.", deep)
    material = Material()
    material.hear("prompt", "Refund it")
    for number, (asked, said) in enumerate((({"order": "A1"}, "unpaid"), ({"ref": "B1"}, "paid"))):
        material.read(str(number), find, asked, {"said": said}, tool="find_order")
    for tool, beside in ((refund, {}), (refund, {"ref": "B1"}), (refund_how, {"ref": "B1"})):
        results = material.facts(tool, {"order": "A1", **beside}).results()
        assert results.get("find_order", {}).get("said") != "paid"


@pytest.mark.parametrize(
    ("read", "called", "same"),
    [
        ("ABC-9", "ABC-9", True),
        (1, "1", True),
        ("1", 1, True),
        (["x", 1], ["x", 1], True),
        ("abc-9", "ABC-9", False),
        ("straße", "STRASSE", False),
        (" ABC-2", "ABC-2", False),
        ("01", 1, False),
        (True, 1, False),
        ("true", True, False),
        (None, "none", False),
        (["x"], "['x']", False),
    ],
)
def test_another_record_than_the_calls_says_nothing_about_it(read, called, same):
    """Ids and file names may differ in capitals and blanks alone, and somebody may choose one so."""
    found = records.about({"order": called}, [("find_order", {"order": read}, {"said": "paid"})])
    assert found == ({"find_order": {"said": "paid"}} if same else {})
