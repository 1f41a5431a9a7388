"""Commands: those that live, and one with its output, which the page's script reads on as it comes."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.http.console.acting import Acting, Form
from adapters.http.console.rendering import page
from codespace_es.command_handlers.driving import TerminateProcess
from codespace_es.command_handlers.observing import (
    AskProcess,
    ListProcesses,
    OutputRead,
    ProcessList,
    ReadProcess,
)
from codespace_es.projections.process_status import ProcessReport
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_PATH = "/console/processes"
_NO_OUTPUT_HERE = (ErrorCode.PROCESS_NOT_FOUND, ErrorCode.TIMEOUT)
"""It runs elsewhere, or was ended by its time limit before it printed anything."""


def process_routes(acting: Acting) -> list[Route]:
    """Return the routes."""

    async def show_all(request: Request) -> Response:
        listed = await acting.ask(request, ListProcesses())
        assert isinstance(listed, ProcessList)
        return page(request, "processes.html", processes=listed.processes)

    async def show(request: Request) -> Response:
        process_id = request.path_params["process_id"]
        process = await acting.ask(request, AskProcess(process_id=process_id))
        assert isinstance(process, ProcessReport)
        start = max(0, process.output_total - limits.READ_OUTPUT_BYTES_MAX)
        output, note = None, None
        try:
            asked = ReadProcess(process_id=process_id, cursor=start, max_bytes=limits.READ_OUTPUT_BYTES_MAX)
            output = await acting.ask(request, asked)
            assert isinstance(output, OutputRead)
        except CodespaceError as error:
            if error.code not in _NO_OUTPUT_HERE:
                raise
            note = error.message
        return page(request, "process.html", process=process, output=output, start=start, note=note)

    async def terminate(request: Request, _form: Form) -> str:
        process_id = request.path_params["process_id"]
        await acting.ask(request, TerminateProcess(process_id=process_id))
        return f"{_PATH}/{process_id}"

    return [
        acting.shows(_PATH, show_all),
        acting.shows(f"{_PATH}/{{process_id}}", show),
        acting.acts(f"{_PATH}/{{process_id}}/terminate", terminate),
    ]
