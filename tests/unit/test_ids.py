"""Identifiers sort in the order in which they were made."""

from datetime import UTC, datetime

from common import ids


def test_ids_made_in_one_go_sort_in_that_order():
    made = [ids.memory_id() for _ in range(2_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_an_id_says_when_it_was_made():
    before = datetime.now(UTC)
    made = ids.memory_id()
    assert ids.first_of("mem", before) <= made
    assert before.timestamp() - 0.001 <= ids.made_at(made) <= datetime.now(UTC).timestamp()
