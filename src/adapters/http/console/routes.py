"""The console's routes, all beneath `/console`."""

from starlette.routing import Route

from adapters.http.console.acting import Acting
from adapters.http.console.approval_pages import approval_routes
from adapters.http.console.log_pages import log_routes
from adapters.http.console.login import login_routes
from adapters.http.console.pending_pages import pending_routes
from adapters.http.console.process_pages import process_routes
from adapters.http.console.work_pages import work_routes
from adapters.http.json_calls import JsonSide
from adapters.http.sessions import Sessions


def console_routes(side: JsonSide, sessions: Sessions, operator_token: str) -> list[Route]:
    """Return the routes, for whoever shows `operator_token` once."""
    acting = Acting(side, sessions)
    return [
        *login_routes(acting, operator_token),
        *approval_routes(acting),
        *work_routes(acting),
        *pending_routes(acting),
        *log_routes(acting),
        *process_routes(acting),
    ]
