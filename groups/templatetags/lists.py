"""Template tags of the admin's lists."""

from typing import Any

from django import template
from unfold.templatetags.unfold_list import result_headers

from groups import rows

register = template.Library()

register.filter("plain", rows.plain)


@register.inclusion_tag("admin/rows.html", takes_context=True)
def list_rows(context: Any, cl: Any) -> dict[str, Any]:
    """`{% list_rows cl %}`: the table of a list that is `plain`."""
    headers = list(result_headers(cl))
    return {
        "cl": cl,
        "result_headers": headers,
        "num_sorted_fields": sum(bool(header["sortable"] and header["sorted"]) for header in headers),
        "rows": list(zip(headings(cl), rows.rows(cl, headers), strict=True)),
        "has_add_permission": cl.model_admin.has_add_permission(context["request"]),
    }


def headings(cl: Any) -> list[Any]:
    """What stands above each row: the heading of the group that begins with it, as the page's `headings_of`
    has them; empty in a list that the reader has put into another order.
    """
    found = getattr(cl.model_admin, "headings_of", None)
    if found is None or "o" in cl.params:
        return [""] * len(cl.result_list)
    return list(found(list(cl.result_list)))
