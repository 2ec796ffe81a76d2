from typing import Any

from django.apps import AppConfig
from django.utils.translation import gettext_lazy

from common import labels


class GroupsConfig(AppConfig):
    name = "groups"
    verbose_name = gettext_lazy("Groups and people")

    def ready(self) -> None:
        labels.translate(self)
        from allauth.account.signals import authentication_step_completed
        from django.contrib.auth.signals import user_logged_in
        from django.db.models.signals import post_delete

        user_logged_in.connect(note_sign_in, dispatch_uid="deputy.confirmed")
        authentication_step_completed.connect(note_confirmation, dispatch_uid="deputy.confirmed_again")
        post_delete.connect(end_tokens, sender=self.get_model("Membership"), dispatch_uid="deputy.tokens_end")


def end_tokens(sender: Any, instance: Any, **more: Any) -> None:
    """A token ends with the membership it was issued in, however that goes."""
    from groups import tokens

    tokens.end(instance.organization_id, instance.user_id)


def note_sign_in(sender: Any, request: Any, user: Any, **more: Any) -> None:
    """Whoever signs in has just proved who they are; at a provider, when the provider says they did."""
    from groups import actors, readers
    from groups.sign_in import sessions

    if request is None or not hasattr(request, "session"):
        return
    sessions.begin(request)
    actors.confirm(request, sessions.confirmed_at(request, user))
    readers.note(user)


def note_confirmation(sender: Any, request: Any, reauthenticated: bool = False, **more: Any) -> None:
    """So has whoever confirms it with a password, a code or a passkey while signed in."""
    from groups import actors

    if reauthenticated:
        actors.confirm(request)
