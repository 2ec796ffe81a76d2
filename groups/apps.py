from django.apps import AppConfig
from django.utils.translation import gettext_lazy

from common import labels


class GroupsConfig(AppConfig):
    name = "groups"
    verbose_name = gettext_lazy("Groups and people")

    def ready(self) -> None:
        labels.translate(self)
