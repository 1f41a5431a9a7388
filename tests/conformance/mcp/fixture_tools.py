"""The tools that the conformance suite asks for by name, each as small as the suite allows.

Source: @modelcontextprotocol/conformance 0.2.0-alpha.12, the scenarios' descriptions.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    Tool,
)

Result = CallToolResult | InputRequiredResult
Call = Callable[[Any, CallToolRequestParams], Awaitable[Result]]
Question = CreateMessageRequest | ElicitRequest | ListRootsRequest

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

BUS = InMemorySubscriptionBus()

_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def text(words: str) -> TextContent:
    return TextContent(text=words)


def image() -> ImageContent:
    return ImageContent(data=PIXEL, mime_type="image/png")


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=words))


def _always(*content: ContentBlock, is_error: bool = False) -> Call:
    async def call(_context: Any, _params: CallToolRequestParams) -> Result:
        return CallToolResult(content=list(content), is_error=is_error)

    return call


def form(message: str, **properties: Any) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text(prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


_NAME = {"type": "string"}


async def _log(context: Any, _params: CallToolRequestParams) -> Result:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)
    return CallToolResult(content=[text("logged")])


async def _report_progress(context: Any, _params: CallToolRequestParams) -> Result:
    for done in (0, 50, 100):
        await context.session.report_progress(done, total=100, message=f"Completed step {done} of 100")
    return CallToolResult(content=[text("done")])


async def _ask_model(context: Any, params: CallToolRequestParams) -> Result:
    prompt = SamplingMessage(role="user", content=text((params.arguments or {})["prompt"]))
    answer = await context.session.create_message([prompt], max_tokens=100, related_request_id=context.request_id)
    return CallToolResult(content=[text(f"LLM response: {answer.content.text}")])


def _ask_user(properties: Mapping[str, Any]) -> Call:
    async def call(context: Any, params: CallToolRequestParams) -> Result:
        message = (params.arguments or {}).get("message", "Please answer")
        schema = {"type": "object", "properties": dict(properties), "required": []}
        answer = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
        return CallToolResult(content=[text(f"User response: action={answer.action}, content={answer.content}")])

    return call


_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}

_ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}],
    },
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": [{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}],
        },
    },
}


def _rounds(*rounds: Mapping[str, Question], states: tuple[str | None, ...]) -> Call:
    """Return a tool that asks its questions round after round, and is done when the last was answered.

    Args:
        rounds: The questions of each round, by key.
        states: What goes along with each round, and has to come back unchanged with its answers.
    """

    async def call(_context: Any, params: CallToolRequestParams) -> Result:
        at = _round_answered(states, params)
        if at is None or not set(rounds[at]) <= set(params.input_responses or {}):
            at = -1
        if at + 1 == len(rounds):
            return CallToolResult(content=[text("state-ok: every question was answered")])
        return InputRequiredResult(input_requests=dict(rounds[at + 1]), request_state=states[at + 1])

    return call


def _round_answered(states: tuple[str | None, ...], params: CallToolRequestParams) -> int | None:
    if not params.input_responses and params.request_state is None:
        return None
    if params.request_state not in states:
        raise MCPError(INVALID_PARAMS, "requestState isn't what was given out", None)
    return states.index(params.request_state)


async def _ask_what_is_declared(_context: Any, params: CallToolRequestParams) -> Result:
    questions: dict[str, Question] = {
        "sampling": _sample("Greet me"), "elicitation": form("Who are you?", name=_NAME), "roots": ListRootsRequest(),
    }
    declared = (params.meta or {}).get(_CAPABILITIES, {})
    return InputRequiredResult(input_requests={key: each for key, each in questions.items() if key in declared})


async def _need_sampling(_context: Any, params: CallToolRequestParams) -> Result:
    if "sampling" not in (params.meta or {}).get(_CAPABILITIES, {}):
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", needed)
    return CallToolResult(content=[text("sampling is there")])


def _publish(event: ToolsListChanged | PromptsListChanged) -> Call:
    async def call(_context: Any, _params: CallToolRequestParams) -> Result:
        await BUS.publish(event)
        return CallToolResult(content=[text("told")])

    return call


_CONFIRM = {"confirm": form("Please confirm", ok={"type": "boolean"})}

CALLS: Mapping[str, Call] = {
    "test_simple_text": _always(text("This is a simple text response for testing.")),
    "test_image_content": _always(image()),
    "test_audio_content": _always(AudioContent(data=SILENCE, mime_type="audio/wav")),
    "test_embedded_resource": _always(embedded("test://embedded-resource", "Embedded.")),
    "test_multiple_content_types": _always(
        text("Several kinds:"), image(), embedded("test://mixed", '{"test":"data","value":123}', "application/json")
    ),
    "test_error_handling": _always(text("This tool intentionally returns an error for testing"), is_error=True),
    "test_tool_with_logging": _log,
    "test_logging_tool": _log,
    "test_tool_with_progress": _report_progress,
    "test_sampling": _ask_model,
    "test_elicitation": _ask_user({"response": {"type": "string"}}),
    "test_elicitation_sep1034_defaults": _ask_user(_DEFAULTS),
    "test_elicitation_sep1330_enums": _ask_user(_ENUMS),
    "test_missing_capability": _need_sampling,
    "test_trigger_tool_change": _publish(ToolsListChanged()),
    "test_trigger_prompt_change": _publish(PromptsListChanged()),
    "test_streaming_elicitation": _rounds({"name": form("Who are you?", name=_NAME)}, states=(None,)),
    "test_input_required_result_elicitation": _rounds({"user_name": form("Who?", name=_NAME)}, states=(None,)),
    "test_input_required_result_sampling": _rounds({"capital": _sample("Capital of France?")}, states=(None,)),
    "test_input_required_result_list_roots": _rounds({"client_roots": ListRootsRequest()}, states=(None,)),
    "test_input_required_result_request_state": _rounds(_CONFIRM, states=("given-out",)),
    "test_input_required_result_tampered_state": _rounds(_CONFIRM, states=("given-out-untouched",)),
    "test_input_required_result_multiple_inputs": _rounds(
        {"user_name": form("Who?", name=_NAME), "greeting": _sample("Greet"), "client_roots": ListRootsRequest()},
        states=("several",),
    ),
    "test_input_required_result_multi_round": _rounds(
        {"step1": form("Step 1: who?", name=_NAME)}, {"step2": form("Step 2: which?", color=_NAME)},
        states=("after-one", "after-two"),
    ),
    "test_input_required_result_capabilities": _ask_what_is_declared,
}

_ARGUMENTS = {"test_sampling": "prompt", "test_elicitation": "message"}


def listed() -> list[Tool]:
    """Return the tools as `tools/list` tells them."""
    return [Tool(name=name, description="For the conformance suite.", input_schema=_schema(name)) for name in CALLS]


def _schema(name: str) -> dict[str, Any]:
    argument = _ARGUMENTS.get(name)
    if argument is None:
        return {"type": "object", "properties": {}}
    return {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
