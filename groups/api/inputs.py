"""The bodies that arrange groups, roles, projects and tokens."""

from rest_framework import serializers

from common.api.views import StrictBoolean, StrictSerializer, TextField, names
from groups.routing import MAX_LEARNED
from groups.scopes import SCOPES

ID = 31
MOST_TEXT = 100_000  # characters
LONGEST = 32_767


def text(**more: object) -> TextField:
    return TextField(required=False, allow_blank=True, max_length=MOST_TEXT, **more)


def number(least: int, **more: object) -> serializers.IntegerField:
    return serializers.IntegerField(required=False, min_value=least, max_value=LONGEST, **more)


def published() -> StrictBoolean:
    return StrictBoolean(required=False, help_text="Other agents may give it tasks at its A2A address.")


class ProjectInput(StrictSerializer):
    slug = TextField(max_length=63, help_text="Letters, digits, - and _.")
    name = TextField(max_length=200)
    review_deposits = StrictBoolean(
        required=False, help_text="What groups learn waits for a curator before any search sees it."
    )
    allow_self_approval = StrictBoolean(required=False)
    published = published()


class RoleInput(StrictSerializer):
    name = TextField(max_length=100)
    description = text()
    system_prompt = text()
    allowed_tools = names(64, allow_null=True, help_text="null: no restriction; []: nothing.")
    denied_tools = names(64)
    delegable_tools = names(64, allow_null=True, help_text="What it may pass on; null: what it may use.")
    model = TextField(required=False, allow_blank=True, max_length=200)
    not_known_yet = StrictBoolean(required=False, help_text="Accept names that Deputy does not know yet.")


class GroupChange(StrictSerializer):
    name = TextField(max_length=200)
    description = text()
    capabilities = names(100)
    max_rounds = number(1)
    active = StrictBoolean(required=False)
    published = published()


class GroupInput(GroupChange):
    project = TextField(max_length=63, help_text="Id or slug.")


class MemberChange(StrictSerializer):
    role = TextField(max_length=ID, help_text="A role's id.")
    agent = TextField(
        max_length=ID, required=False, help_text="Who plays it; left out, a new agent of this role."
    )
    ordinal = number(0, help_text="When it speaks; left out, after the others.")
    is_lead = StrictBoolean(required=False, help_text="The lead speaks last and decides; one at most.")


class MemberInput(MemberChange):
    group = TextField(max_length=ID)


class ExampleInput(StrictSerializer):
    group = TextField(max_length=ID)
    goal = TextField(max_length=MAX_LEARNED)
    fits = StrictBoolean(required=False, default=True, help_text="false: the goal does not belong there.")


class TokenInput(StrictSerializer):
    name = TextField(max_length=100, required=False, allow_blank=True, default="")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(list(SCOPES)),
        required=False,
        allow_empty=False,
        max_length=len(SCOPES),
        help_text="Left out: reading alone. What decides or speaks as its person is asked for by name.",
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)
