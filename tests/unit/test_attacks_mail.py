"""Ways to have a mail say, or go, more than its decider saw."""

from types import SimpleNamespace

import pytest
from django.core import mail

from runs.tools import registry
from runs.tools.base import ToolError

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # for the standard library's header


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_header_is_ended_by_an_argument(end):
    send = registry.all_tools()["send_email"].function
    run = SimpleNamespace(idempotency_key="0" * 64)
    for to, subject in (
        ("ada@example.org", f"Release{end}{end}Another text."),
        ("ada@example.org", f"Release{end}"),
        (f'"ada{end}b"@example.org', "Release"),
    ):
        with pytest.raises(ToolError):
            send(run, to=[to], subject=subject, body="Friday it is.")
    assert mail.outbox == []
