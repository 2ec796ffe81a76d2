"""Every status and kind of the runs, and which transition leads where."""

from django.db.models import TextChoices


class RunStatus(TextChoices):
    PENDING = "pending", "Pending"  # start; waiting --signal, child's end, expiry--> pending; expired lease
    RUNNING = "running", "Running"  # pending --claim--> running
    WAITING = "waiting", "Waiting"  # running --park--> waiting
    COMPLETED = "completed", "Completed"  # running --finish--> completed
    FAILED = "failed", "Failed"  # running --finish--> failed; any active one past its limits
    CANCELLED = "cancelled", "Cancelled"  # any active --cancel--> cancelled


ACTIVE = frozenset({RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING})
TERMINAL = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})

TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset(
        {RunStatus.PENDING, RunStatus.WAITING, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
    ),
    RunStatus.WAITING: frozenset({RunStatus.PENDING, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.COMPLETED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
}


class RunKind(TextChoices):
    PERSONAL = "personal", "Personal agent"
    GROUP = "group", "Group"


class Driver(TextChoices):
    INTERNAL = "internal", "Deputy"
    EXTERNAL = "external", "An outside agent"


class WaitKind(TextChoices):
    CHILD = "child", "A group's result"
    APPROVAL = "approval", "A decision"
    INPUT = "input", "An answer"
    REVIEW = "review", "Word on what happened"
    TIMER = "timer", "A point in time"
    SIGNAL = "signal", "A signal"


# The kinds that wait for a person; a child's clock stands still meanwhile.
WAITS_FOR_A_PERSON = (WaitKind.APPROVAL, WaitKind.INPUT, WaitKind.REVIEW)


# Begins the keys of waits after which a call is made again (runs/gate/repeats.py). No message and no signal
# resolves them.
REPEATS = "repeat-"
# Begins the keys of waits for a form that somebody else's server asks to be filled in (runs/tools/forms.py).
# Only words that name the key answer it.
FORMS = "form-"
# Begins the keys of waits for a task that somebody else's server has made of a call
# (runs/actions/mcp_tasks.py). Only what the server says of the task resolves them.
TASKS = "mcp-task-"


class WaitOutcome(TextChoices):
    COMPLETED = "completed", "Completed"  # the child completed, the person answered, the signal came
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    FAILED = "failed", "Failed"  # the child failed
    CANCELLED = "cancelled", "Cancelled"
    EXPIRED = "expired", "Expired"
    SUPERSEDED = "superseded", "Superseded"


class CallStatus(TextChoices):
    REQUESTED = "requested", "Requested"
    WAITING = "waiting", "Waiting"  # for a child, a decision, an answer or a review
    RUNNING = "running", "Running"  # tool.called is committed, the result is not
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    DENIED = "denied", "Denied"
    REJECTED = "rejected", "Rejected"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"
    UNKNOWN = "unknown", "Outcome unknown"  # interrupted between tool.called and its result


class ApprovalStatus(TextChoices):
    PENDING = "pending", "Pending"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"
    SUPERSEDED = "superseded", "Superseded"


class ApprovalEffect(TextChoices):
    REQUIRE_APPROVAL = "require_approval", "Needs an approval"
    REQUIRE_HUMAN = "require_human", "Needs a person's approval"


class EventType(TextChoices):
    RUN_CREATED = "run.created"
    RUN_STARTED = "run.started"
    RUN_WAITING = "run.waiting"
    RUN_RESUMED = "run.resumed"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_CANCELLED = "run.cancelled"
    RUN_RESTORED = "run.restored"  # the database is a backup: what was done since is not in it
    MESSAGE_CREATED = "message.created"
    MODEL_RETRIED = "model.retried"
    TOOL_CALLED = "tool.called"
    TOOL_COMPLETED = "tool.completed"
    TOOL_FAILED = "tool.failed"
    TOOL_BLOCKED = "tool.blocked"
    TOOL_WAITS = "tool.waits"
    TOOL_REQUIRES_APPROVAL = "tool.requires_approval"
    TOOL_APPROVED = "tool.approved"
    APPROVAL_EDITED = "approval.edited"
    APPROVAL_FOLLOWED_UP = "approval.followed_up"  # a reminder, an escalation, an alarm and its end
    TOOL_REJECTED = "tool.rejected"
    TOOL_EXPIRED = "tool.expired"
    TOOL_OUTCOME_UNKNOWN = "tool.outcome_unknown"
    WAIT_COMPLETED = "wait.completed"
    CHILD_CREATED = "child.created"
    MEMORY_WRITTEN = "memory.written"
    MEMORY_DEPOSITED = "memory.deposited"
    CONTEXT_CHANGED = "context.changed"


class MessageType(TextChoices):
    TASK = "TASK", "Task"
    PROPOSAL = "PROPOSAL", "Proposal"
    EVIDENCE = "EVIDENCE", "Evidence"
    DECISION = "DECISION", "Decision"
    STATUS = "STATUS", "Status"
