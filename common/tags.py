"""Template tags of Deputy's pages; no page has to load them."""

from datetime import datetime

from django import template
from django.template import defaultfilters
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from common import redact, times
from common.normal_forms import normalized
from common.whom import short

register = template.Library()

EFFECTS = {
    "allow": gettext_noop("allowed"),
    "require_approval": gettext_noop("needs an approval"),
    "require_human": gettext_noop("needs a person's approval"),
    "deny": gettext_noop("denied"),
}


@register.filter
def ago(moment: datetime | None) -> str:
    """`{{ run.created_at|ago }}`: 3 min ago, the exact time on hover."""
    return times.ago(moment)


@register.filter
def left(moment: datetime | None) -> str:
    """`{{ approval.expires_at|left }}`: in 3 min, the exact time on hover."""
    return times.left(moment)


@register.filter
def exact(moment: datetime) -> str:
    """The moment to the second."""
    return times.exact(moment)


@register.filter
def whom(text: str, most: int) -> str:
    """A value in few characters, with what says whom it reaches."""
    return short(text, most)


@register.filter
def masked(words: str) -> str:
    """A text without what looks like a secret."""
    return redact.shown(str(words))


@register.filter(is_safe=True)
@defaultfilters.stringfilter
def truncatechars(words: str, most: int) -> str:
    """Django's own, in the place of it: that one takes minutes for a text of nothing but marks."""
    return str(defaultfilters.truncatechars(normalized("NFC", words), most))


@register.filter
def effect(name: str) -> str:
    """What policy says, in words: `{{ "deny"|effect }}` is denied."""
    return _(EFFECTS[name]) if name in EFFECTS else name
