from typing import Any

from django.apps import AppConfig
from django.utils.translation import gettext_lazy

from common import labels


class GroupsConfig(AppConfig):
    name = "groups"
    verbose_name = gettext_lazy("Groups and people")

    def ready(self) -> None:
        labels.translate(self)
        from django.contrib.auth.signals import user_logged_in

        user_logged_in.connect(note_sign_in, dispatch_uid="deputy.confirmed")


def note_sign_in(sender: Any, request: Any, **more: Any) -> None:
    """Whoever signs in has just proved who they are."""
    from groups import actors

    if request is not None and hasattr(request, "session"):
        actors.confirm(request)
