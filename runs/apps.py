from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        from policy import tools
        from runs.tools import facts

        tools.register("registry", facts.of_organization)
