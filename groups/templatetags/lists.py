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
        "rows": list(rows.rows(cl, headers)),
        "has_add_permission": cl.model_admin.has_add_permission(context["request"]),
    }
