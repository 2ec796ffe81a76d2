"""docs/security.md says of who may do what exactly what the code says."""

import re
from pathlib import Path

from policy.authority import VERBS
from policy.authority_table import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"


def test_the_table_of_who_may_do_what_is_that_of_the_code():
    printed = re.search(r"<!-- made by [^>]*-->\n(.*?)\n<!-- end -->", PAGE.read_text("utf-8"), re.S)
    assert printed is not None and printed[1] == table()


def test_every_verb_has_its_line():
    assert table().count("\n") == len(VERBS) + 1
