"""Operation ids that read as what a client calls: `cancel_run`, `list_runs`, `update_rule`."""

from typing import Any

# Collections, by their address below /api/: what one of them is called, and several.
RESOURCES = {
    "accounts": ("account", "accounts"),
    "approvals": ("approval", "approvals"),
    "approvals/decisions": ("decision", "decisions"),
    "audit": ("audit_entry", "audit_entries"),
    "audit/changes": ("change", "changes"),
    "audit/proposed": ("proposed_change", "proposed_changes"),
    "channels": ("channel", "channels"),
    "groups": ("group", "groups"),
    "groups/examples": ("routing_example", "routing_examples"),
    "groups/members": ("group_member", "group_members"),
    "memories": ("memory", "memories"),
    "policy/bindings": ("tool_binding", "tool_bindings"),
    "policy/capabilities": ("capability", "capabilities"),
    "policy/grants": ("grant", "grants"),
    "policy/rules": ("rule", "rules"),
    "projects": ("project", "projects"),
    "roles": ("role", "roles"),
    "runs": ("run", "runs"),
    "runs/{id}/tool-calls": ("tool_call", "tool_calls"),
    "schedules": ("schedule", "schedules"),
    "tokens": ("token", "tokens"),
    "tools": ("tool", "tools"),
    "webhooks": ("webhook", "webhooks"),
    "webhooks/deliveries": ("webhook_delivery", "webhook_deliveries"),
}
# What the rule below would name less well.
NAMED = {
    "get approvals/{id}/origins": "get_approval_origins",
    "get approvals/decisions/export": "export_decisions",
    "post groups/route": "route_request",
    "post jobs/{id}/signal": "signal_job",
    "get memories/search": "search_memories",
    "post policy/evaluate": "evaluate_policy",
    "post runs": "start_run",
    "get runs/{id}/children": "list_run_children",
    "get runs/{id}/context": "get_run_context",
    "post runs/{id}/context": "change_run_context",
    "get runs/{id}/events": "list_run_events",
    "get runs/{id}/events/stream": "stream_run_events",
    "post runs/{id}/message": "send_message",
    "post runs/{id}/tool-calls": "call_tool",
    "get runs/{id}/tree": "get_run_tree",
    "get runs/{id}/tree/stream": "stream_run_tree",
    "get schedules/{id}/history": "list_schedule_history",
    "post schedules/times": "preview_schedule_times",
}
VERBS = {"get": "get", "patch": "update", "put": "replace", "delete": "delete"}


def named(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular's: gives each operation its name. Raises ValueError where two share one."""
    taken: set[str] = set()
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            name = operation_id(method, path) or operation["operationId"]
            if name in taken:
                raise ValueError(f"{method} {path} would be a second {name}: name it in {__name__}.NAMED")
            taken.add(name)
            operation["operationId"] = name
    return result


def operation_id(method: str, path: str) -> str:
    """The name of the operation; empty where neither the tables nor the rule know one.

    A collection is listed and added to, one of it is got, updated and deleted; what is posted below one of it
    is a verb: `POST runs/{id}/cancel/` is `cancel_run`.
    """
    address = path.removeprefix("/api/").strip("/")
    if found := NAMED.get(f"{method} {address}"):
        return found
    if address in RESOURCES:
        one, several = RESOURCES[address]
        return {"get": f"list_{several}", "post": f"create_{one}"}.get(method, "")
    above, _, last = address.rpartition("/")
    if last.startswith("{") and above in RESOURCES:
        return f"{VERBS[method]}_{RESOURCES[above][0]}" if method in VERBS else ""
    resource, _, identifier = above.rpartition("/")
    if method == "post" and identifier.startswith("{") and resource in RESOURCES:
        return f"{last.replace('-', '_')}_{RESOURCES[resource][0]}"
    return ""
