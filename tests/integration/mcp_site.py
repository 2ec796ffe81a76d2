"""A real MCP server as a process of its own, for tests: `python -m tests.integration.mcp_site PORT FILE`.

FILE holds JSON that says how it behaves, read anew with every request: {"tools": […], "mode": …}. `tokens`
says whose each bearer token is, and `protected` is its metadata as a protected resource.
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

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult | types.InputRequiredResult:
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

    server = Server("crm", on_list_tools=list_tools, on_call_tool=call_tool)
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
