"""MCP, both ways: tools of MCP servers for Deputy's agents, and Deputy's tools for MCP clients.

`runs/tools/mcp` uses the servers an organization has registered; `app` is Deputy as a server.
"""
