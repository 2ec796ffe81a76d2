"""Log records as people or machines read them, without secrets, and with the run they are about."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from common import current, redact
from common.trace_ids import trace_id

PLAIN = "{asctime} {levelname} {name}: {message}"


class Plain(logging.Formatter):
    """One line for a person."""

    def __init__(self) -> None:
        super().__init__(PLAIN, style="{")

    def format(self, record: logging.LogRecord) -> str:
        return redact.text(super().format(record))


class Json(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and of a run its id, trace and organization."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact.text(record.getMessage()),
            **_work(),
        }
        if record.exc_info:
            line["exception"] = redact.text(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _work() -> dict[str, str]:
    work = current.work()
    if work is None:
        return {}
    return {
        "run_id": work.run_id,
        "trace_id": f"{trace_id(work.root_id):032x}",
        "organization_id": work.organization_id,
    }
