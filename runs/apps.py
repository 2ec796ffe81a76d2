from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.db.models.signals import post_delete, post_save
from django.utils.translation import gettext_lazy

from common import labels, upgrades


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = gettext_lazy("Runs")

    def ready(self) -> None:
        labels.translate(self)
        checks.register(upgrades.check, checks.Tags.database)
        from groups import changes, known
        from groups.sign_in import kept
        from policy import tools
        from runs.actions import accounts as connecting
        from runs.actions import models
        from runs.gate import repeats
        from runs.log import listeners, months
        from runs.notices import own
        from runs.tools import facts, naming, registry
        from runs.tools.mcp import accounts
        from runs.webhooks import outbox

        checks.register(months.check, checks.Tags.database)
        tools.register("toolbox", facts.of_organization)
        listeners.listen(outbox.listener)
        listeners.listen(own.listener)
        registry.load()
        naming.register()
        repeats.register(accounts.KIND, accounts.is_connected)
        kept.register(connecting.EXCHANGER)
        for signal in (post_save, post_delete):
            signal.connect(end_unused, sender="runs.McpServer", dispatch_uid="deputy.sign_ins_unused")
        post_save.connect(end_accounts, sender="groups.Membership", dispatch_uid="deputy.accounts_rest")
        post_delete.connect(end_accounts, sender="groups.Membership", dispatch_uid="deputy.accounts_end")
        changes.connect()
        known.register(
            tools=lambda organization_id: tools.tools(organization_id),
            model=model_problem,
            models=models.answering,
        )
        check_model()
        check_tracing()


def end_unused(sender: Any, instance: Any, **more: Any) -> None:
    """People's sign-ins are kept no longer than some server is asked in exchange for them."""
    from groups.sign_in import kept

    kept.end_all_unused()


def end_accounts(sender: Any, instance: Any, signal: Any, **more: Any) -> None:
    """What somebody has connected ends with their membership, however that goes."""
    if signal is post_save and instance.active:
        return
    from runs.actions import accounts

    accounts.end(instance.organization_id, instance.user_id)


def model_problem(organization_id: str, model: str) -> str:
    """Why no agent of the organization could use this model; empty where one can."""
    from runs.providers import registry
    from runs.providers.base import ProviderError

    try:
        registry.check(model, organization_id)
    except ProviderError as error:
        return error.message
    prefix, _, name = model.strip().partition(":")
    if prefix == registry.REMOTE and organization_id:
        return no_remote_agent(organization_id, name.strip())
    return ""


def no_remote_agent(organization_id: str, name: str) -> str:
    """That the organization has no remote agent of this name; empty where it has."""
    from runs.models import RemoteAgent

    there = RemoteAgent.objects.filter(organization_id=organization_id, name=name).exists()
    return "" if there else f"There is no remote agent '{name[:100]}'."


def check_model() -> None:
    """A model nobody answers for, or whose key is missing, is said at start and not by the first run.

    Raises common.env.BadSetting, naming the variable.
    """
    from common.env import BadSetting
    from runs.providers import registry
    from runs.providers.base import ProviderError

    try:
        registry.check(settings.DEPUTY_MODEL)
    except ProviderError as error:
        raise BadSetting(f"DEPUTY_MODEL={settings.DEPUTY_MODEL} cannot be used: {error.message}") from None


def check_tracing() -> None:
    """Spans that are wanted and cannot be made are said at start. Raises common.env.BadSetting."""
    from common import tracing
    from common.env import BadSetting

    if not tracing.exporting:
        return
    try:
        from common import telemetry  # noqa: F401
    except ImportError:
        raise BadSetting(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set and OpenTelemetry is not installed: "
            "pip install -r requirements-otel.txt."
        ) from None
