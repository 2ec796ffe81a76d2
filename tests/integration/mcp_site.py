"""A real MCP server as a process of its own, for tests: `python -m tests.integration.mcp_site PORT FILE`.

FILE holds JSON that says how it behaves, read anew with every request: {"tools": […], "mode": …}. `tokens`
says whose each bearer token is, and `protected` is its metadata as a protected resource. With `task`, calls
become tasks where the client says that they may; it is what `tasks/get` says of each. `resources` and
`templates` are what it lists of them, and `contents` what it reads, by address.
"""

import json
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Any

WELL_KNOWN = "/.well-known/oauth-protected-resource"
caller: ContextVar[str] = ContextVar("caller", default="")


def main() -> None:
    import anyio
    import mcp_types as types
    import uvicorn
    from mcp import MCPError
    from mcp.server.lowlevel import Server

    port, book = int(sys.argv[1]), Path(sys.argv[2])

    def says() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(book.read_text())
        return found

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in says()["tools"]])

    def asking(said: dict[str, Any], params: Any) -> types.InputRequiredResult | None:
        """What it asks: `asks` holds the requests of one round after the other."""
        done = int((params.request_state or "state-0").removeprefix("state-"))
        declined = any(one.action != "accept" for one in (params.input_responses or {}).values())
        if declined or done >= len(said["asks"]):
            return None
        requests = said["asks"][done]
        state = f"state-{done + 1}" if not said.get("for_ever") else "state-0"
        found = {"resultType": "input_required", "inputRequests": requests, "requestState": state}
        return types.InputRequiredResult.model_validate(found | said.get("also", {}))

    def task(said: dict[str, Any]) -> dict[str, Any]:
        """The same id for all: a test has one call. Times are the protocol's to have."""
        now = "2026-11-22T10:00:00Z"
        plain = {"status": "working", "createdAt": now, "lastUpdatedAt": now, "ttlMs": 60_000}
        return {"taskId": "task-1", **plain, **said["task"]}

    class TaskParams(types.RequestParams):
        task_id: str
        input_responses: dict[str, Any] | None = None

    def on_task(method: str) -> Any:
        async def handle(ctx: Any, params: Any) -> dict[str, Any]:
            said = says()
            with book.with_suffix(".asked").open("a") as asked:
                told = {"method": method, "task": params.task_id, "responses": params.input_responses}
                heads = {name: ctx.request.headers.get(name) for name in ("mcp-name", "authorization")}
                asked.write(json.dumps({**told, **heads, "meta": ctx.meta}) + "\n")
            if said.get("task") is None or params.task_id != "task-1":
                raise MCPError(types.INVALID_PARAMS, "There is no such task.")
            if said.get("crashes"):
                raise MCPError(types.INTERNAL_ERROR, "Not now.")
            return {**(task(said) if method == "tasks/get" else {}), "resultType": "complete"}

        return handle

    async def call_tool(ctx: Any, params: Any) -> Any:
        said, arguments = says(), params.arguments or {}
        with book.with_suffix(".calls").open("a") as calls:
            kept = {"name": params.name, "arguments": arguments, "meta": ctx.meta, "by": caller.get()}
            if said.get("asks"):
                kept["responses"] = params.model_dump(mode="json", by_alias=True).get("inputResponses")
                kept["state"] = params.request_state
            kept["traceparent"] = ctx.request.headers.get("traceparent")
            calls.write(json.dumps(kept) + "\n")
        if said.get("asks") and (asked := asking(said, params)):
            return asked
        if said.get("task") is not None and (said.get("always") or declares_tasks(ctx)):
            return {**task(said), "status": "working", "resultType": "task", **said.get("made", {})}
        if said.get("mode") == "slow":
            await anyio.sleep(30)
        if said.get("mode") == "giant":
            return types.CallToolResult(content=[types.TextContent(type="text", text="x" * 5_000_000)])
        if said.get("mode") == "long":
            return types.CallToolResult(content=[types.TextContent(type="text", text="y" * 150_000)])
        if said.get("mode") == "error":
            text = types.TextContent(type="text", text="No such customer.")
            return types.CallToolResult(content=[text], is_error=True)
        if said.get("mode") == "crash":
            raise RuntimeError("a secret of the server")
        picture = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
        text = types.TextContent(type="text", text=f"found {arguments.get('name', 'nobody')}")
        return types.CallToolResult(
            content=[text, picture], structured_content={"arguments": arguments, "said": said.get("says")}
        )

    def declares_tasks(ctx: Any) -> bool:
        declared = ctx.meta["io.modelcontextprotocol/clientCapabilities"]
        return "io.modelcontextprotocol/tasks" in declared.get("extensions", {})

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        found = [types.Resource.model_validate(one) for one in says().get("resources", [])]
        return types.ListResourcesResult(resources=found)

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        found = [types.ResourceTemplate.model_validate(one) for one in says().get("templates", [])]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
        with book.with_suffix(".asked").open("a") as asked:
            asked.write(json.dumps({"method": "resources/read", "uri": params.uri}) + "\n")
        return types.ReadResourceResult.model_validate({"contents": says()["contents"][params.uri]})

    server = Server(
        "crm",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        server.add_request_handler(method, TaskParams, on_task(method))
    inner = server.streamable_http_app(stateless_http=True)

    async def plain(send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        await send({"type": "http.response.body", "body": body})

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        """A protected resource: a bearer token that it knows, or where to get one."""
        said, headers = says(), dict(scope["headers"])
        if scope["path"].startswith(WELL_KNOWN):
            found = json.dumps(said["protected"]).encode()
            await plain(send, 200, found, (b"content-type", b"application/json"))
            return
        with book.with_suffix(".heads").open("a") as heads:
            heads.write(json.dumps({name.decode(): value.decode() for name, value in headers.items()}) + "\n")
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        if token not in said["tokens"]:
            where = f'Bearer resource_metadata="http://127.0.0.1:{port}{WELL_KNOWN}/mcp"'
            await plain(send, 401, b"", (b"www-authenticate", where.encode()))
            return
        caller.set(said["tokens"][token])
        await inner(scope, receive, send)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and says().get("tokens") is not None:
            await guarded(scope, receive, send)
            return
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and says().get("token") is not None:
            wanted = f"Bearer {says()['token']}".encode()
            if headers.get(b"authorization") != wanted:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await inner(scope, receive, send)

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()
