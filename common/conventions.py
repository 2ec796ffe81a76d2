"""The names that spans carry: OpenTelemetry's conventions for generative AI, which are in development.

A new revision is taken in here, and nowhere else.
"""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"  # the first with gen_ai.provider.name

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

# Of Deputy's prefixes, what the conventions call the provider; others keep their names.
PROVIDERS = {"google": "gcp.gemini"}


def provider(model: str) -> str:
    """Of `google:gemini-3`, `gcp.gemini`."""
    prefix = model.partition(":")[0]
    return PROVIDERS.get(prefix, prefix)


def bare(model: str) -> str:
    """Of `openai:gpt-5`, `gpt-5`; a model without a provider is its own."""
    return model.partition(":")[2] or model
