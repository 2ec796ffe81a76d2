"""Template tags of Deputy's pages; no page has to load them."""

from datetime import datetime

from django import template

from common import times

register = template.Library()


@register.filter
def ago(moment: datetime | None) -> str:
    """`{{ run.created_at|ago }}`: 3 min ago, the exact time on hover."""
    return times.ago(moment)


@register.filter
def left(moment: datetime | None) -> str:
    """`{{ approval.expires_at|left }}`: in 3 min, the exact time on hover."""
    return times.left(moment)
