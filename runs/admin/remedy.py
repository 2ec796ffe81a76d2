"""What to change where a run has failed: the role, the model and the setting that stood behind its error."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from groups.models import Role
from runs.models import Run, RunEvent
from runs.models.choices import EventType, RunStatus

SETTINGS = {  # an error's code, and the setting that set the limit
    "BUDGET_STEPS": "RUN_STEPS",
    "BUDGET_TOKENS": "RUN_TOKENS",
    "BUDGET_SECONDS": "RUN_SECONDS",
    "BUDGET_DEPTH": "RUN_DEPTH",
    "BUDGET_CHILDREN": "RUN_CHILDREN",
}
ANY_MODEL = "DEPUTY_MODEL"
OF_A_MODEL = "MODEL_"


@dataclass(frozen=True)
class Remedy:
    """`role` has the page on which its model is changed; `advice` says what to do, in words."""

    role: Role | None
    model: str
    setting: str
    advice: str
    of_model: bool = False  # whether the page of models has more to say


def remedy(run: Run) -> Remedy | None:
    """For a failed run; two queries. None for any other."""
    if run.status != RunStatus.FAILED:
        return None
    code = str((run.error or {}).get("code", ""))
    role, model = _speaker(run)
    own = bool(role and role.model)
    setting = SETTINGS.get(code, "")
    if setting:
        advice = _("Raise {setting}, or ask for less at once.").format(setting=setting)
    elif code.startswith(OF_A_MODEL) and own:
        advice = _("Choose another model for the role, or see to the key and account of this one.")
    elif code.startswith(OF_A_MODEL):
        setting = ANY_MODEL
        advice = _(
            "Choose another model in {setting} or for the role, or see to the key and account of this one."
        )
        advice = advice.format(setting=setting)
    else:
        advice = _("Read below what the run did, change the goal or the role, and run it again.")
    return Remedy(role, model, setting, advice, code.startswith(OF_A_MODEL))


def _speaker(run: Run) -> tuple[Role | None, str]:
    """Who spoke last, or would have spoken first, and by which model."""
    log = RunEvent.objects.filter(run=run)
    first = log.filter(type=EventType.RUN_CREATED).values_list("payload", flat=True).first() or {}
    last = log.exclude(agent="").order_by("-seq").values_list("agent", flat=True).first()
    members = first.get("members") or []
    speaker = next((one for one in members if one.get("agent") == last), members[0] if members else {})
    role = Role.objects.filter(pk=speaker.get("role_id")).first()
    return role, (role.model if role and role.model else str(first.get("model", "")))
