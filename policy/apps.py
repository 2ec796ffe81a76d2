from django.apps import AppConfig
from django.utils.translation import gettext_lazy

from common import labels


class PolicyConfig(AppConfig):
    name = "policy"
    verbose_name = gettext_lazy("Policy")

    def ready(self) -> None:
        labels.translate(self)
        from policy import unknown, weakening

        unknown.register()
        weakening.register()
