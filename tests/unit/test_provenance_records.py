"""Which record a run has read is the one that a call is about."""

import pytest

from policy.provenance import records


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
