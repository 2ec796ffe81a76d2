"""How the admin looks and what its sidebar offers."""

from functools import cache
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import NoReverseMatch, get_script_prefix, reverse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

# (title: shown in the reader's language, icon, the url's name, without `admin:` for its own, the permission)
Item = tuple[str, str, str, str]
SUPERUSER = "superuser"  # in place of a permission: what belongs to the whole installation

SIDEBAR: tuple[tuple[str, tuple[Item, ...]], ...] = (
    (
        "",
        (
            ("Overview", "space_dashboard", "index", ""),
            ("My agent", "chat", "web:home", ""),
            ("Ask", "edit_square", "runs_run_ask", "runs.start_run"),
        ),
    ),
    (
        "Work",
        (
            ("Approvals", "approval_delegation", "runs_approval_changelist", "runs.view_approval"),
            ("Who decided what", "how_to_reg", "runs_decided", "runs.view_approval"),
            ("Runs", "play_circle", "runs_run_changelist", "runs.view_run"),
            ("Schedules", "schedule", "runs_schedule_changelist", "runs.view_schedule"),
            ("Tool calls", "build", "runs_toolcall_changelist", "runs.view_toolcall"),
            ("Waits", "hourglass_empty", "runs_wait_changelist", "runs.view_wait"),
            ("Events", "receipt_long", "runs_runevent_changelist", "runs.view_runevent"),
            ("Decisions", "fact_check", "runs_decisions", "runs.view_runevent"),
        ),
    ),
    (
        "Knowledge",
        (
            (
                "Deposited knowledge",
                "neurology",
                "memory_depositedknowledge_changelist",
                "memory.view_memory",
            ),
            ("What agents remember", "psychology", "memory_remembered_changelist", ""),
        ),
    ),
    (
        "Agents",
        (
            ("Groups", "groups", "groups_group_changelist", "groups.view_group"),
            ("Roles", "badge", "groups_role_changelist", "groups.view_role"),
            ("Models", "cognition", "runs_models", "runs.view_modelkey"),
            ("Agents", "smart_toy", "groups_agentinstance_changelist", "groups.view_agentinstance"),
            (
                "Routing examples",
                "alt_route",
                "groups_routingexample_changelist",
                "groups.view_routingexample",
            ),
        ),
    ),
    (
        "Connections",
        (
            ("MCP servers", "hub", "runs_mcpserver_changelist", "runs.view_mcpserver"),
            ("MCP tools", "extension", "runs_mcptool_changelist", "runs.view_mcptool"),
            ("Remote agents", "smart_toy", "runs_remoteagent_changelist", "runs.view_remoteagent"),
            ("Webhooks", "webhook", "runs_webhookendpoint_changelist", "runs.view_webhookendpoint"),
            ("Channels", "campaign", "runs_channel_changelist", "runs.view_channel"),
            (
                "Webhook deliveries",
                "outbox",
                "runs_webhookdelivery_changelist",
                "runs.view_webhookdelivery",
            ),
        ),
    ),
    (
        "Policy",
        (
            ("Rules", "gavel", "policy_capabilityrule_changelist", "policy.view_capabilityrule"),
            ("Capabilities", "key", "policy_capability_changelist", "policy.view_capability"),
            ("Tool bindings", "link", "policy_toolbinding_changelist", "policy.view_toolbinding"),
            (
                "Tool declarations",
                "label",
                "policy_tooldeclaration_changelist",
                "policy.view_tooldeclaration",
            ),
            (
                "Outside entities",
                "category",
                "policy_outsideentity_changelist",
                "policy.view_outsideentity",
            ),
            ("What would happen?", "help_center", "runs_what_if", "policy.view_capabilityrule"),
            ("Standing approvals", "verified", "policy_grant_changelist", "policy.view_grant"),
        ),
    ),
    (
        "Organization",
        (
            ("Organizations", "domain", "groups_organization_changelist", "groups.view_organization"),
            ("Projects", "folder", "groups_project_changelist", "groups.view_project"),
            ("Memberships", "card_membership", "groups_membership_changelist", "groups.view_membership"),
            ("Member roles", "shield_person", "groups_customrole_changelist", "groups.view_customrole"),
            (
                "Identity providers",
                "login",
                "groups_identityprovider_changelist",
                "groups.view_identityprovider",
            ),
            ("Tokens", "vpn_key", "groups_token_changelist", "groups.view_token"),
            (
                "Proposed changes",
                "approval_delegation",
                "groups_proposedchange_changelist",
                "groups.view_proposedchange",
            ),
            ("Changes", "history", "groups_change_changelist", "groups.view_change"),
            ("Users", "person", "auth_user_changelist", "auth.view_user"),
        ),
    ),
    (
        "Installation",
        (("Queue", "monitor_heart", "runs_health", SUPERUSER),),
    ),
)
BADGES = {"runs_approval_changelist": "runs.admin.dashboard.pending_badge"}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The sidebar for this person: what they may not see is not offered."""
    groups: list[dict[str, Any]] = [
        {
            "title": _(title) if title else None,
            "separator": bool(title),
            "items": [entry for item in items if (entry := _entry(request, item))],
        }
        for title, items in SIDEBAR
    ]
    groups = _choice(request) + groups
    _mark_here(request.path, [entry for group in groups for entry in group["items"]])
    return [group for group in groups if group["items"]]


def _choice(request: HttpRequest) -> list[dict[str, Any]]:
    """For somebody who belongs to several organizations: where they are, and the way to another."""
    from groups import current  # the settings, which import this module, come before any model

    if len(memberships := current.memberships_of(request.user)) < 2:
        return []
    here = current.membership_of(request.user) or memberships[0]
    link = reverse("admin:groups_organization_choose")
    entry = {"title": str(here.organization), "icon": "swap_horiz", "link": link}
    return [{"title": None, "separator": False, "items": [entry]}]


def _mark_here(path: str, entries: list[dict[str, Any]]) -> None:
    """Of the entries whose page this one lies under, the nearest is where we are."""
    home = reverse("admin:index")
    links = [link for entry in entries if path.startswith(link := entry["link"]) and link.startswith(home)]
    nearest = max((link for link in links if link != home or path == home), key=len, default="")
    for entry in entries:
        entry["active"] = entry["link"] == nearest


def _may(request: HttpRequest, permission: str) -> bool:
    if permission == SUPERUSER:
        return bool(request.user.is_superuser)
    return not permission or request.user.has_perm(permission)


def _entry(request: HttpRequest, item: Item) -> dict[str, Any] | None:
    title, icon, name, permission = item
    if not _may(request, permission):
        return None
    link = _link(name, get_script_prefix())
    if link is None:
        return None
    entry: dict[str, Any] = {"title": _(title), "icon": icon, "link": link}
    if name in BADGES and (badge := import_string(BADGES[name])(request)):
        entry["badge"] = badge
    return entry


@cache
def _link(name: str, prefix: str) -> str | None:
    """The page of this name below `prefix`, under which Deputy is served; None where there is none."""
    try:
        return reverse(name if ":" in name else f"admin:{name}")
    except NoReverseMatch:  # not every deployment has every app
        return None


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Deputy",
    "SITE_HEADER": "Deputy",
    "SITE_SUBHEADER": gettext_lazy("Control plane for agents"),
    "SHOW_LANGUAGES": True,
    "SITE_SYMBOL": "assignment_ind",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("deputy/favicon.svg")}
    ],
    "SITE_URL": None,
    "SHOW_BACK_BUTTON": True,
    "STYLES": [lambda request: static("deputy/admin.css")],
    "SCRIPTS": [lambda request: static("deputy/times.js"), lambda request: static("deputy/names.js")],
    "DASHBOARD_CALLBACK": "runs.admin.dashboard.dashboard",
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": "config.unfold.navigation",
    },
    "COLORS": {
        "primary": {
            "50": "oklch(96.9% .016 264)",
            "100": "oklch(93.2% .032 264)",
            "200": "oklch(88.2% .059 264)",
            "300": "oklch(80.9% .105 264)",
            "400": "oklch(70.7% .165 264)",
            "500": "oklch(62.3% .2 264)",
            "600": "oklch(54.6% .22 264)",
            "700": "oklch(48.8% .21 264)",
            "800": "oklch(42.4% .18 264)",
            "900": "oklch(37.9% .13 264)",
            "950": "oklch(28.2% .09 264)",
        },
    },
}
