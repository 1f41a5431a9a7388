"""The product's own server over HTTP with the conformance suite's fixtures added: same factory, guard and transport.

What the product has is kept: its tools and resources are listed and answered beside the fixtures.
"""

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import anyio
from fixture_tools import BUS, CALLS, PIXEL, embedded, form, image, listed, text
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp_types import (
    BlobResourceContents,
    CallToolRequestParams,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from adapters.bootstrap import open_codespace
from adapters.cli.options import effective_settings
from adapters.http.listening import listen
from adapters.http.serving import serve_http
from adapters.mcp_server.server import build_server
from adapters.settings.http import HttpSettings
from adapters.settings.load import Flags

_TEMPLATE_START, _TEMPLATE_END = "test://template/", "/data"


def add_fixtures(server: Server[Any]) -> None:
    """Give `server` what the suite asks for by name."""
    _add_tools(server)
    _add_resources(server)
    _add_prompts(server)

    async def nothing(_context: Any, _params: Any) -> EmptyResult:
        return EmptyResult()

    async def complete(_context: Any, _params: CompleteRequestParams) -> CompleteResult:
        return CompleteResult(completion=Completion(values=[], total=0, has_more=False))

    server.add_request_handler("logging/setLevel", SetLevelRequestParams, nothing)
    server.add_request_handler("resources/subscribe", SubscribeRequestParams, nothing)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, nothing)
    server.add_request_handler("completion/complete", CompleteRequestParams, complete)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(BUS))


def _own(server: Server[Any], method: str) -> Callable[[Any, Any], Any]:
    entry = server.get_request_handler(method)
    assert entry is not None, method
    return entry.handler


def _add_tools(server: Server[Any]) -> None:
    own_list, own_call = _own(server, "tools/list"), _own(server, "tools/call")

    async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[*(await own_list(context, params)).tools, *listed()])

    async def call_tool(context: Any, params: CallToolRequestParams) -> Any:
        return await CALLS.get(params.name, own_call)(context, params)

    server.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)


def _add_resources(server: Server[Any]) -> None:
    own_list, own_templates = _own(server, "resources/list"), _own(server, "resources/templates/list")
    own_read = _own(server, "resources/read")
    contents: dict[str, TextResourceContents | BlobResourceContents] = {
        "test://static-text": TextResourceContents(uri="test://static-text", mime_type="text/plain", text="Static."),
        "test://static-binary": BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PIXEL),
        "test://watched-resource": TextResourceContents(
            uri="test://watched-resource", mime_type="text/plain", text="Watched."
        ),
    }

    async def list_resources(context: Any, params: PaginatedRequestParams | None) -> ListResourcesResult:
        added = [Resource(name=uri.removeprefix("test://"), uri=uri, mime_type=each.mime_type)
                 for uri, each in contents.items()]
        return ListResourcesResult(resources=[*(await own_list(context, params)).resources, *added])

    async def list_templates(context: Any, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        added = ResourceTemplate(name="template", uri_template=f"{_TEMPLATE_START}{{id}}{_TEMPLATE_END}")
        own = await own_templates(context, params)
        return ListResourceTemplatesResult(resource_templates=[*own.resource_templates, added])

    async def read(context: Any, params: ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        if uri in contents:
            return ReadResourceResult(contents=[contents[uri]])
        if uri.startswith(_TEMPLATE_START) and uri.endswith(_TEMPLATE_END):
            name = uri.removeprefix(_TEMPLATE_START).removesuffix(_TEMPLATE_END)
            words = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
            return ReadResourceResult(
                contents=[TextResourceContents(uri=uri, mime_type="application/json", text=words)]
            )
        return await own_read(context, params)

    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read)


_PROMPTS = {
    "test_simple_prompt": (), "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",), "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def _add_prompts(server: Server[Any]) -> None:
    async def list_prompts(_context: Any, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[
            Prompt(
                name=name, description="For the conformance suite.",
                arguments=[PromptArgument(name=each, description="Any text.", required=True) for each in arguments],
            )
            for name, arguments in _PROMPTS.items()
        ])

    async def get_prompt(_context: Any, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
        given = params.arguments or {}
        content: list[Any] = [text("This is a simple prompt for testing.")]
        match params.name:
            case "test_prompt_with_arguments":
                content = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
            case "test_prompt_with_embedded_resource":
                content.insert(0, embedded(given["resourceUri"], "Embedded."))
            case "test_prompt_with_image":
                content.insert(0, image())
            case "test_input_required_result_prompt" if not params.input_responses:
                question = form("Which context?", context={"type": "string"})
                return InputRequiredResult(input_requests={"user_context": question})
        return GetPromptResult(messages=[PromptMessage(role="user", content=each) for each in content])

    server.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", GetPromptRequestParams, get_prompt)


async def main(root: str, *, is_stateless: bool) -> None:
    """Serve `root`, its log in memory, on any free port."""
    settings = effective_settings(Flags(root=root, is_ephemeral=True), {})
    address = HttpSettings(port=0)
    with listen(address) as listener:
        async with open_codespace(settings, transport="http") as opened:
            server = build_server(opened.codespace, opened.life)
            add_fixtures(server)
            await serve_http(
                server, opened.codespace, opened.life, listener, address, open_source=opened.log.open_reader,
                is_stateless=is_stateless,
            )


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    anyio.run(lambda: main(sys.argv[1], is_stateless="--stateful" not in sys.argv))
