"""The names that spans carry: OpenTelemetry's conventions for generative AI and MCP, both in development.

A new revision is taken in here, and nowhere else.
"""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.39.0"  # the first with MCP's names

CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
AGENT_ID = "gen_ai.agent.id"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

# HTTP; a span of a request is called by its method and route
HTTP_METHOD = "http.request.method"
HTTP_ROUTE = "http.route"
HTTP_STATUS = "http.response.status_code"

# MCP; a span of a request is called by its method, and by its tool where there is one
MCP_METHOD = "mcp.method.name"
MCP_VERSION = "mcp.protocol.version"
REQUEST_ID = "jsonrpc.request.id"
RESPONSE_CODE = "rpc.response.status_code"
TRANSPORT = "network.transport"
PROTOCOL = "network.protocol.name"
TOOL_ERROR = "tool_error"  # error.type where a tool's result has isError
TOOLS_CALL = "tools/call"
TOOLS_LIST = "tools/list"
RESOURCES_LIST, RESOURCES_READ = "resources/list", "resources/read"
TASKS_GET, TASKS_UPDATE, TASKS_CANCEL = "tasks/get", "tasks/update", "tasks/cancel"

# Of Deputy's prefixes, what the conventions call the provider; others keep their names.
PROVIDERS = {"google": "gcp.gemini"}


def provider(model: str) -> str:
    """Of `google:gemini-3`, `gcp.gemini`."""
    prefix = model.partition(":")[0]
    return PROVIDERS.get(prefix, prefix)


def bare(model: str) -> str:
    """Of `openai:gpt-5`, `gpt-5`; a model without a provider is its own."""
    return model.partition(":")[2] or model
