"""What a probe asks: is the process alive, can it serve; and on request, does the whole installation work."""

from functools import cache
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from common import replica
from common.api import errors
from config.watchers import may_watch
from runs.observe.alarms import alarms
from runs.observe.health import health

Checks = dict[str, dict[str, Any]]  # by name: whether it is `ok`, and the figures

SERVES = ("database", "migrations")  # what a web process needs; the rest is the installation's


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers. (Under ASGI common/web.py has said so before.)"""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when this process can serve, 503 otherwise; with `?all`, also when nobody does the work.

    What was found is told to those who may watch (config/watchers.py).
    """
    everything, watched = "all" in request.GET, may_watch(request)
    checks = examine(everything or watched)
    wrong = sorted(name for name in checks if not checks[name]["ok"] and (everything or name in SERVES))
    told: dict[str, Any] = {"checks": checks} if watched else {}
    if wrong:
        words = f"Not ready: {', '.join(wrong)}." if told else "Not ready."
        problem = errors.body(503, "NOT_READY", words, **told)
        return JsonResponse(
            problem, status=503, content_type=errors.CONTENT_TYPE, headers={"Retry-After": "1"}
        )
    return JsonResponse({"status": "ok", **told})


def examine(everything: bool) -> Checks:
    """The checks that a process serves by, or all; none is made that cannot do without a failed one."""
    try:
        missing = unapplied()
        checks: Checks = {"database": {"ok": True}, "migrations": {"ok": not missing, "missing": missing}}
        return checks | working() if everything and not missing else checks
    except DatabaseError as error:
        return {"database": {"ok": False, "error": type(error).__name__}}


def working() -> Checks:
    now = health()
    queue = {
        "ok": not now.late,
        "messages": now.queue_depth,
        "oldest_seconds": round(now.queue_age, 1),
        "oldest_pending_run_seconds": round(now.pending_age, 1),
    }
    workers = {"ok": now.workers > 0, "groups": now.groups, "workers": now.workers, "busy": now.busy}
    unheard = alarms()
    lists = {"replica": replica.check()} if replica.is_set() else {}
    return {"queue": queue, "workers": workers, "approvals": {"ok": not unheard, "alarms": unheard}, **lists}


def unapplied() -> list[str]:
    """Migrations of this code that the database has not seen. Asks it every time."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    return sorted(f"{app}.{name}" for app, name in known() - applied)


@cache
def known() -> set[tuple[str, str]]:
    """The migrations that come with this code, replaced ones aside."""
    loader = MigrationLoader(None)
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return set(loader.disk_migrations) - replaced
