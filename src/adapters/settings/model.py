"""The configuration file as it may be written: every key, its type and its default. Unknown keys are errors.

A setting that would silently do nothing is refused at start-up.
Source: decision 37.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.vocabulary.workspace import PatchMatching, Profile


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WorkspaceTable(_Table):
    """One `[workspaces.NAME]`, or `[defaults]` where `root` is missing."""

    root: str | None = Field(default=None, description="The directory, absolute (`~` is your home).")
    profile: Profile = Field(default="read-only", description="What callers may do.")
    environment: Literal["host", "linux-container"] = Field(
        default="host", description="`linux-container` can be registered, but every access to it is refused."
    )
    patch_matching: PatchMatching = Field(
        default="lenient",
        description="Whether a hunk may match apart from white space and in several places (with a warning), or must "
                    "match exactly and once.",
    )
    protected_paths: list[str] = Field(
        default=[], description="Globs of files that no patch may write; `.git` always is one."
    )
    network: Literal["restricted", "enabled"] = Field(default="restricted", description="Network of commands.")
    approvals: Literal["off", "confirm", "operator"] = Field(default="off", description="Who grants mutations.")
    approval_ttl_seconds: int | None = Field(
        default=None, ge=1, le=100 * 365 * 86_400, description="After it an approval expires; 100 years at most."
    )
    elicitation_timeout_seconds: int = Field(
        default=0, ge=0, le=86_400, description="How long the client's user is asked about a hold; 0: not asked."
    )
    operator_unsafe: bool = Field(default=False, description="Allow operator approvals without a sandbox.")
    live_process: Literal["exclusive", "shared"] = Field(
        default="exclusive", description="Whether patches are allowed while a command lives."
    )
    sandbox: Literal["auto", "require", "off"] = Field(default="auto", description="How commands are confined.")
    env: dict[str, str] = Field(default={}, description="Environment variables given to commands.")
    pass_env: list[str] = Field(default=[], description="Names of the server's variables that commands inherit.")
    pending_bias: Literal["prefer", "require"] = Field(
        default="prefer", description="Whether a pending preview must be resolved before other changes."
    )
    stdin_default: Literal["pipe", "null"] = Field(default="pipe", description="Standard input of commands.")
    output_retention_bytes: int = Field(
        default=262_144, ge=4_096, le=64 * 1024 * 1024, description="Output kept of a command."
    )
    process_timeout_seconds: int = Field(default=30, ge=0, description="Time limit of a command; 0 is none.")


class HttpTable(_Table):
    """`[http]`: serving over the network, for `serve --http` alone."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8787, ge=0, le=65_535, description="Port to listen on; 0 is any that is free.")
    token: str | None = Field(default=None, description="Bearer token of agents; required beyond loopback.")
    operator_token: str | None = Field(
        default=None, description="The operator's token; without one the operator's API and console are off."
    )
    allowed_hosts: list[str] = Field(default=[], description="Host headers accepted beside those of the listener.")
    allowed_origins: list[str] = Field(default=[], description="Origin headers accepted beside the server's own.")


class FileSettings(_Table):
    """A whole configuration file."""

    data_dir: str | None = Field(default=None, description="Where the event log is kept, absolute.")
    store: str = Field(
        default="sqlite",
        description="`sqlite`: the file codespace.db in the data directory. Or a PostgreSQL that several hosts share: "
                    "`postgresql://USER@HOST:PORT/DATABASE`.",
    )
    max_processes: int = Field(default=8, ge=1, description="Live commands in all.")
    resolve_listing: Literal["always", "while-pending"] = Field(
        default="always", description="When the tool `resolve` is listed."
    )
    custom_tools: list[str] = Field(default=[], description="Files or folders with tools of your own, absolute.")
    http: HttpTable = Field(default=HttpTable(), description="Serving over the network.")
    defaults: WorkspaceTable = Field(default=WorkspaceTable(), description="Any workspace key but `root`.")
    workspaces: dict[str, WorkspaceTable] = Field(default={}, description="Workspaces by name.")
