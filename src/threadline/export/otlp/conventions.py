"""The names of span attributes: OpenTelemetry's GenAI semantic conventions, and threadline's own.

The GenAI conventions are still in development, and names change between versions. All names that threadline writes are
in this module. They are those of `SEMCONV_VERSION`, which MLflow and Phoenix read; `docs/opentelemetry.md` has a table.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from threadline.model.ledger import EXACT, Charge
from threadline.model.text import format_decimal

SEMCONV_VERSION = "1.44.0"
"""The version of the semantic conventions that the names are from."""
SCHEMA_URL = f"https://opentelemetry.io/schemas/{SEMCONV_VERSION}"
MAPPING_VERSION = "1"
"""The version of the mapping from sessions to spans. It is part of all ids: traces of different versions never mix."""

SERVICE_NAME = "claude-code"
PROVIDER = "anthropic"
MAIN_AGENT = "claude-code"

INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

# Resource
SERVICE_NAME_KEY = "service.name"

# All spans
OPERATION = "gen_ai.operation.name"
CONVERSATION_ID = "gen_ai.conversation.id"
SESSION_ID = "session.id"
ERROR_TYPE = "error.type"

# Agents
PROVIDER_NAME = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
AGENT_ID = "gen_ai.agent.id"
AGENT_VERSION = "gen_ai.agent.version"

# API calls
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens"

# Calls of tools
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"

# Content, only on request
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# What the conventions have no name for
PROJECT = "threadline.project"
GIT_BRANCH = "threadline.git_branch"
TITLE = "threadline.title"
SIDE_AGENT = "threadline.side_agent"
TURN = "threadline.turn"
PLACE = "threadline.place"
REQUEST_ID = "threadline.request_id"
OUTCOME = "threadline.outcome"
LINK_KIND = "threadline.link"
PART = "threadline.part"
FLAGS = "threadline.flags"
CACHE_WRITE_1H_TOKENS = "threadline.usage.cache_write_1h_tokens"
WEB_SEARCHES = "threadline.usage.web_searches"
AMOUNT = "threadline.amount"

# Costs have no name in the conventions either. These are the ones that Langfuse, OpenInference and MLflow read.
GEN_AI_COST = "gen_ai.usage.cost"
OPENINFERENCE_COST = "llm.cost.total"
MLFLOW_COST = "mlflow.llm.cost"


def usage_attributes(charge: Charge) -> dict[str, Any]:
    """The tokens and the cost of a charge. Summed over a trace, they are the totals of `threadline usage --session`.

    `gen_ai.usage.input_tokens` includes the tokens read from and written to the cache, as the conventions require.
    """
    attributes: dict[str, Any] = {
        INPUT_TOKENS: charge.prompt_tokens,
        OUTPUT_TOKENS: charge.output,
        CACHE_READ_TOKENS: charge.cache_read,
        CACHE_CREATION_TOKENS: charge.cache_write,
        CACHE_WRITE_1H_TOKENS: charge.cache_write_1h,
        WEB_SEARCHES: charge.web_searches,
        FLAGS: [str(flag) for flag in charge.flags],
    }
    if charge.part:
        attributes[PART] = charge.part
    amount = charge.amount
    if amount is not None:
        attributes |= _cost_attributes(charge, amount)
    return attributes


def _cost_attributes(charge: Charge, amount: Decimal) -> dict[str, Any]:
    """The exact amount in USD as text, and as floats under the names that consumers read."""
    output = charge.rate.amount(output=charge.output) if charge.rate is not None else Decimal(0)
    return {
        AMOUNT: format_decimal(amount),
        GEN_AI_COST: float(amount),
        OPENINFERENCE_COST: float(amount),
        MLFLOW_COST: {
            "input_cost": float(EXACT.subtract(amount, output)),
            "output_cost": float(output),
            "total_cost": float(amount),
        },
    }
