"""Reading a workspace: describe, read, find, search. No lock, no event; file work runs in worker threads."""

from functools import partial
from typing import Any

from anyio import to_thread
from pydantic import BaseModel, Field

from codespace_es import policy
from codespace_es.admission import admit
from codespace_es.command_handlers.holding import count_pending
from codespace_es.ports.files import SearchQuery
from codespace_es.ports.runner import RunnerLostError, SandboxReport
from codespace_es.ports.world import World
from codespace_es.projections import workspace_info
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command, Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.workspace import Workspace

# describe_workspace


class DescribeWorkspace(Command):
    """Ask what a workspace is and allows."""

    workspace_id: str | None = Field(default=None, description="Left out or empty: the server alone.")


class WorkspaceDescription(Answer):
    """A workspace's place and what works in it; empty without a workspace."""

    workspace_id: str | None = Field(default=None, description="Its name here.")
    profile: str | None = Field(default=None, description="read-only or workspace-write.")
    root: str | None = Field(default=None, description="Absolute path.")
    execution: dict[str, Any] | None = Field(default=None, description="What is available, and how.")
    pending_approvals: int | None = Field(default=None, description="Holds that wait for a decision.")
    custom_tools: dict[str, Any] = Field(default_factory=dict, description="The operator's: tools, errors.")


async def describe_workspace(world: World, command: DescribeWorkspace, _caller: Caller) -> WorkspaceDescription:
    """Return what `command` asks for. Raises WORKSPACE_NOT_FOUND."""
    custom_tools = await _custom_tools(world)
    if not command.workspace_id:
        return WorkspaceDescription(custom_tools=custom_tools)
    workspace = world.workspaces.get(command.workspace_id)
    if workspace is None:
        workspace = admit(world.workspaces, command.workspace_id, "read")
    return WorkspaceDescription(
        workspace_id=workspace.workspace_id,
        profile=workspace.profile,
        root=workspace.root,
        execution=workspace_info.project(workspace, await _sandbox(world, workspace)),
        pending_approvals=await count_pending(world, workspace.key),
        custom_tools=custom_tools,
    )


async def _custom_tools(world: World) -> dict[str, Any]:
    """Return the names of the operator's tools, and what kept others from being there."""
    catalogue = await world.custom_tools.catalogue()
    return {
        "tools": [tool.name for tool in catalogue.tools],
        "errors": [{"source": fault.source, "message": fault.message} for fault in catalogue.faults],
    }


async def _sandbox(world: World, workspace: Workspace) -> SandboxReport | None:
    """Return what commands in `workspace` are confined by; None if that can't be found out, or none may run."""
    if not policy.allows(workspace, "exec"):
        return None
    if workspace.sandbox == "off":
        return SandboxReport(1, "none", is_network_enforced=False, gaps=("the operator has turned the sandbox off",))
    try:
        return await world.runner.sandbox()
    except RunnerLostError:
        return None


# read_file


class ReadFile(Command):
    """Ask for a part of a file."""

    workspace_id: str = Field(description="Workspace to read in.")
    path: str = Field(description="Relative to the root.")
    offset: int | None = Field(default=None, ge=0, description="First byte; default 0.")
    limit: int | None = Field(default=None, description="Bytes, 1..1048576 (default).")
    line_start: int | None = Field(default=None, description="First line, 1-based; -n: last n. Not with offset.")
    line_end: int | None = Field(default=None, description="Inclusive.")
    work_id: str | None = Field(default=None, description="Selects the hint only.")


class FileWindow(Answer):
    """A part of a file and the version of all of it."""

    path: str = Field(description="As requested, with / separators.")
    content: str = Field(description="The window as text.")
    version: str = Field(description="sha256:… of the whole file, for expected_versions.")
    truncated: bool = Field(description="Bytes remain after the window.")
    byte_count: int = Field(description="Raw bytes in the window.")
    content_lossy: bool = Field(description="Bytes that aren't UTF-8 were replaced.")
    line_count: int = Field(description="Lines in the whole file.")
    offset: int | None = Field(default=None, description="First byte of the window, if not 0.")
    next_offset: int | None = Field(default=None, description="Continue only here.")
    line_start: int | None = Field(default=None, description="First line of the window, when asked by lines.")
    line_end: int | None = Field(default=None, description="Last line of the window.")


async def read_file(world: World, command: ReadFile, _caller: Caller) -> FileWindow:
    """Return the window. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED, OUTPUT_LIMIT, INVALID_ARGUMENT and path codes."""
    workspace = admit(world.workspaces, command.workspace_id, "read")
    limit = _within(command.limit, limits.READ_BYTES_MAX)
    by_lines = command.line_start is not None or command.line_end is not None
    if by_lines and (command.offset is not None or command.limit is not None):
        raise _unusable("line_start", "line_start and line_end can't be given together with offset or limit")
    files = world.files.open(workspace.root)
    if by_lines:
        line_start = 1 if command.line_start is None else command.line_start
        if line_start == 0:
            raise _unusable("line_start", "lines are counted from 1, or from the end with -n")
        read = partial(files.read_lines, command.path, line_start=line_start, line_end=command.line_end, limit=limit)
    else:
        read = partial(files.read_window, command.path, offset=command.offset or 0, limit=limit)
    # A small file is read in less time than a worker thread is woken in.
    is_quick = files.is_small(command.path, bytes_max=limits.READ_INLINE_BYTES_MAX)
    window = read() if is_quick else await to_thread.run_sync(read)
    after = window.offset + window.byte_count
    has_more = after < window.size_bytes and window.offset < window.size_bytes
    return FileWindow(
        path=command.path.replace("\\", "/"),
        content=window.content,
        version=window.version,
        truncated=has_more,
        byte_count=window.byte_count,
        content_lossy=window.content_lossy,
        line_count=window.line_count,
        offset=window.offset or None,
        next_offset=after if has_more else None,
        line_start=window.line_start,
        line_end=window.line_end,
    )


# find_files


class FindFiles(Command):
    """Ask which files there are."""

    workspace_id: str = Field(description="Workspace to look in.")
    glob: str | None = Field(default=None, description="*, **, ?, [a-z], {a,b}; without / at any depth.")
    include_ignored: bool = Field(default=False, description="Also what .gitignore leaves out.")
    offset: int = Field(default=0, ge=0, description="Paths to skip.")
    limit: int | None = Field(default=None, description="1..10000 (default).")
    work_id: str | None = Field(default=None, description="Selects the hint only.")


class FilePage(Answer):
    """A page of paths, sorted by their bytes."""

    paths: tuple[str, ...] = Field(description="Relative paths.")
    truncated: bool = Field(description="Not all was returned.")
    incomplete: bool = Field(description="The walk was capped: there may be more files than listed.")
    listing_version: str = Field(description="Identity of the whole list; if it changes, start again at 0.")
    ignored_count: int = Field(description="Files and directories left out by ignore rules.")
    offset: int | None = Field(default=None, description="Index of the first path, if not 0.")
    next_offset: int | None = Field(default=None, description="Continue here.")


async def find_files(world: World, command: FindFiles, _caller: Caller) -> FilePage:
    """Return the page. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED, OUTPUT_LIMIT, INVALID_ARGUMENT and path codes."""
    workspace = admit(world.workspaces, command.workspace_id, "read")
    limit = _within(command.limit, limits.FIND_PATHS_MAX)
    files = world.files.open(workspace.root)
    listing = await to_thread.run_sync(lambda: files.find(command.glob, include_ignored=command.include_ignored))
    page = tuple(listing.paths[command.offset : command.offset + limit])
    after = command.offset + len(page)
    has_more = bool(page) and after < len(listing.paths)
    return FilePage(
        paths=page,
        truncated=has_more or listing.is_incomplete,
        incomplete=listing.is_incomplete,
        listing_version=fingerprint(paths=list(listing.paths), is_incomplete=listing.is_incomplete),
        ignored_count=listing.ignored_count,
        offset=command.offset or None,
        next_offset=after if has_more else None,
        warnings=_listing_warnings(listing.paths, listing.ignored_count, listing.unreadable_count),
    )


def _listing_warnings(paths: Any, ignored_count: int, unreadable_count: int) -> tuple[Notice, ...]:
    warnings = []
    if not paths and ignored_count:
        warnings.append(Notice(
            kind="all_ignored",
            message=f"Nothing matched, but ignore rules left out {ignored_count}: include_ignored true shows them.",
        ))
    if unreadable_count:
        warnings.append(Notice(
            kind="unreadable_names",
            message=f"{unreadable_count} names aren't UTF-8; they are shown with \\xNN and can't be read.",
        ))
    return tuple(warnings)


# search_files


class SearchFiles(Command):
    """Ask which lines match."""

    workspace_id: str = Field(description="Workspace to search in.")
    pattern: str = Field(description="Text, or RE2 with regex.")
    regex: bool = Field(default=False, description="Read pattern as RE2.")
    glob: str | None = Field(default=None, description="See find.")
    case_sensitive: bool = Field(default=True, description="Default true.")
    context: int = Field(default=0, ge=0, le=limits.SEARCH_CONTEXT_LINES_MAX, description="Lines around a match.")
    limit: int | None = Field(default=None, description="1..10000; default 200.")
    offset: int = Field(default=0, ge=0, description="Matches to skip.")
    include_ignored: bool = Field(default=False, description="See find.")
    work_id: str | None = Field(default=None, description="Selects the hint only.")


class LineMatch(BaseModel):
    """One matching line."""

    path: str
    line: int = Field(description="1-based.")
    column: int = Field(description="1-based, in code points.")
    text: str = Field(description="The line, at most 500 characters.")
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None


class MatchPage(Answer):
    """A page of matches, by path and line."""

    matches: tuple[LineMatch, ...] = Field(description="In order of path and line.")
    truncated: bool = Field(description="Not all was returned.")
    incomplete: bool = Field(description="A cap or the time limit cut the search.")
    files_searched: int = Field(description="Files whose text was looked at.")
    ignored_count: int = Field(description="Files and directories left out by ignore rules.")
    next_offset: int | None = Field(default=None, description="Continue here.")


async def search_files(world: World, command: SearchFiles, _caller: Caller) -> MatchPage:
    """Return the page. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED, OUTPUT_LIMIT, INVALID_ARGUMENT and path codes."""
    workspace = admit(world.workspaces, command.workspace_id, "read")
    limit = limits.SEARCH_MATCHES_DEFAULT if command.limit is None else command.limit
    query = SearchQuery(
        pattern=command.pattern,
        is_regex=command.regex,
        glob=command.glob,
        is_case_sensitive=command.case_sensitive,
        context_lines=command.context,
        limit=_within(limit, limits.SEARCH_MATCHES_MAX),
        offset=command.offset,
        include_ignored=command.include_ignored,
    )
    files = world.files.open(workspace.root)
    found = await to_thread.run_sync(lambda: files.search(query))
    return MatchPage(
        matches=tuple(
            LineMatch(
                path=match.path, line=match.line, column=match.column, text=match.text,
                before=match.before or None, after=match.after or None,
            )
            for match in found.matches
        ),
        truncated=found.is_truncated or found.is_incomplete,
        incomplete=found.is_incomplete,
        files_searched=found.files_searched,
        ignored_count=found.ignored_count,
        next_offset=command.offset + len(found.matches) if found.is_truncated and found.matches else None,
        warnings=_listing_warnings(found.files_searched and ["any"], found.ignored_count, 0),
    )


def _within(limit: int | None, most: int) -> int:
    """Return the limit asked for, by default `most`. Raises OUTPUT_LIMIT."""
    if limit is None:
        return most
    if not 1 <= limit <= most:
        raise CodespaceError(
            ErrorCode.OUTPUT_LIMIT, f"limit is {limit}; it has to be from 1 to {most}.", detail={"field": "limit"}
        )
    return limit


def _unusable(field: str, reason: str) -> CodespaceError:
    return CodespaceError(ErrorCode.INVALID_ARGUMENT, f"{field} can't be used: {reason}.", detail={"field": field})
