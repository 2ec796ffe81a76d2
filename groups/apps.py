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
        from django.db.models.signals import post_delete, post_save

        user_logged_in.connect(note_sign_in, dispatch_uid="deputy.confirmed")
        authentication_step_completed.connect(note_confirmation, dispatch_uid="deputy.confirmed_again")
        provider = self.get_model("IdentityProvider")
        post_delete.connect(end_sign_ins, sender=provider, dispatch_uid="deputy.sign_ins_end")
        membership = self.get_model("Membership")
        post_delete.connect(end_tokens, sender=membership, dispatch_uid="deputy.tokens_end")
        post_delete.connect(end_membership, sender=membership, dispatch_uid="deputy.member_ends")
        post_save.connect(end_membership, sender=membership, dispatch_uid="deputy.member_rests")


def end_tokens(sender: Any, instance: Any, **more: Any) -> None:
    """A token ends with the membership it was issued in, however that goes."""
    from groups import tokens

    tokens.end(instance.organization_id, instance.user_id)


def end_membership(sender: Any, instance: Any, created: bool | None = None, **more: Any) -> None:
    """What somebody's sign-in at a provider left here for an organization ends with their membership."""
    from groups.sign_in import kept

    saved = created is not None
    if not (saved and instance.active):
        kept.end_of_member(instance.organization_id, instance.user_id)


def end_sign_ins(sender: Any, instance: Any, **more: Any) -> None:
    """What people's sign-ins at a provider left here goes with its entry."""
    from groups.models import KeptSignIn

    KeptSignIn.objects.filter(provider=instance.pk).delete()


def note_sign_in(sender: Any, request: Any, user: Any, **more: Any) -> None:
    """Whoever signs in has just proved who they are; at a provider, when the provider says they did."""
    from groups import actors, readers
    from groups.sign_in import kept, sessions

    if request is None or not hasattr(request, "session"):
        return
    sessions.begin(request)
    kept.keep(request, user)
    actors.confirm(request, sessions.confirmed_at(request, user))
    readers.note(user)


def note_confirmation(sender: Any, request: Any, reauthenticated: bool = False, **more: Any) -> None:
    """So has whoever confirms it with a password, a code or a passkey while signed in."""
    from groups import actors

    if reauthenticated:
        actors.confirm(request)
