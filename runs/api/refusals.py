"""What actions refuse, as problems with a status."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.api.errors import Problem, invalid
from policy.authority import NotAllowed
from runs.actions.channels import ChannelRefused
from runs.actions.decide import DecisionRefused
from runs.actions.signal import SignalRefused
from runs.actions.start import QUEUE_RETRY_SECONDS, CannotStart
from runs.execution.outside_agents import OutsideRefused
from runs.log.log import AlreadyEnded, RunGone
from runs.models import Schedule

FIELDS = {
    "GOAL_EMPTY": "/goal",
    "GOAL_TOO_LONG": "/goal",
    "CONTEXT_TOO_LONG": "/context",
    "CONTENT_TOO_LONG": "/content",
    "EMPTY": "/content",
    "INVALID_ANSWER": "/content",
    "TOO_LONG": "/content",
    "RESERVED_KEY": "/correlation_key",
    "REASON_MISSING": "/reason",
    "BAD_CALL_ID": "/call_id",
    "BAD_NAME": "/name",
    "BAD_CODE": "/code",
    "GRANT_REFUSED": "/remember",
    "MASKED_GOAL": "/goal",
    "TITLE_TOO_LONG": "/title",
    "WHEN_MISSING": "/cron",
    "BAD_CRON": "/cron",
    "BAD_ZONE": "/time_zone",
    "BAD_TIME": "/at",
    "AT_IS_PAST": "/at",
    "NEVER_DUE": "/ends_at",
    "BAD_BUDGET": "/budgets",
    "BAD_NUMBER": "/most_runs",
    "BAD_KIND": "/kind",
    "BAD_ADDRESS": "/address",
}
STATUSES = {
    "NOT_A_MEMBER": 403,
    "NOT_ENTITLED": 403,
    "HUMAN_ONLY": 403,
    "OWN_RUN": 403,
    "NO_SUCH_WAIT": 404,
    "RUN_ENDED": 409,
    "SIGNAL_DIFFERS": 409,
    "CHANGED": 409,
    "DIGEST_MISSING": 428,
    "SCOPE_MISSING": 403,
    "CONFIRM_FIRST": 403,
    "NOT_THE_PERSON": 403,
    "ALREADY_DECIDED": 409,
    "EXPIRED": 409,
    "UNDER_WAY": 409,
    "TOO_MANY_TRIES": 429,
}


@contextmanager
def as_problems(arguments: str = "/arguments") -> Iterator[None]:
    """Around an action. Raises Problem for whatever it refuses; `arguments` points to them in the body."""
    try:
        yield
    except DecisionRefused as refused:
        if refused.code in ("INVALID_ARGUMENTS", "POLICY_DENIES"):
            raise Problem(422, refused.code, refused.message, _wrong(refused, arguments)) from None
        raise _problem(refused) from None
    except OutsideRefused as refused:
        if refused.code in FIELDS:
            raise _problem(refused) from None
        raise Problem(409, refused.code, refused.message, **refused.details) from None
    except (CannotStart, SignalRefused, NotAllowed, ChannelRefused) as refused:
        raise _problem(refused) from None
    except AlreadyEnded as ended:
        raise Problem(409, "RUN_ENDED", str(ended), run_status=ended.status) from None
    except Schedule.DoesNotExist:
        raise Problem(404, "NOT_FOUND", "No such schedule.") from None
    except RunGone:
        raise Problem(404, "NOT_FOUND", "No such run.") from None


def _problem(
    refused: CannotStart | SignalRefused | DecisionRefused | OutsideRefused | NotAllowed | ChannelRefused,
) -> Problem:
    if refused.code in FIELDS:
        return invalid(FIELDS[refused.code], refused.code, refused.message)
    if refused.code == "QUEUE_FULL":
        later = {"Retry-After": str(QUEUE_RETRY_SECONDS)}
        return Problem(429, refused.code, refused.message, headers=later)
    more = refused.details if isinstance(refused, DecisionRefused) else {}
    return Problem(STATUSES.get(refused.code, 409), refused.code, refused.message, **more)


def _wrong(refused: DecisionRefused, arguments: str) -> list[dict[str, str]]:
    """Each argument that does not fit the tool's schema, by its path."""
    told = {"code": refused.code, "message": refused.message, **refused.details}
    return wrong_arguments(told, arguments)


def wrong_arguments(error: dict[str, Any], pointer: str = "/arguments") -> list[dict[str, str]]:
    """A call's error, field by field, each with its place in the body."""
    return [
        {"pointer": pointer + found["path"].rstrip("/"), "code": error["code"], "detail": found["problem"]}
        for found in error.get("errors", [])
    ] or [{"pointer": pointer, "code": error["code"], "detail": error["message"]}]
