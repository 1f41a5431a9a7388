"""A workspace as the operator configured it: identity, root and policy. The model can't register or change one."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.vocabulary.identifiers import WorkspaceKey

Profile = Literal["read-only", "workspace-write"]
PatchMatching = Literal["lenient", "strict"]


class Workspace(BaseModel):
    """One registered directory. `key` is its identity; `workspace_id` only its name in this server's configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace_id: str = Field(description="The name callers use.")
    key: WorkspaceKey = Field(description="uuid5 of machine and canonical root.")
    root: str = Field(description="Absolute, canonical.")
    profile: Profile = Field(default="read-only", description="What callers may do.")
    environment: Literal["host", "linux-container"] = Field(default="host", description="Kind of environment.")
    network: Literal["restricted", "enabled"] = Field(default="restricted", description="For commands.")
    approvals: Literal["off", "confirm", "operator"] = Field(default="off", description="Who grants mutations.")
    approval_ttl_seconds: int | None = Field(default=None, description="After it a hold is expired.")
    elicitation_timeout_seconds: int = Field(
        default=0, description="How long the client's user is asked about a hold; 0: not asked."
    )
    operator_unsafe: bool = Field(
        default=False, description="Operator approvals although commands could reach the data directory."
    )
    protected_paths: tuple[str, ...] = Field(default=(), description="Globs that patches never write; .git always.")
    patch_matching: PatchMatching = Field(default="lenient", description="How hunks may match.")
    live_process: Literal["exclusive", "shared"] = Field(
        default="exclusive", description="Whether a live command holds the workspace against patches and others."
    )
    sandbox: Literal["auto", "require", "off"] = Field(default="auto", description="What commands are confined by.")
    env: dict[str, str] = Field(default_factory=dict, description="Variables for commands, those passed on included.")
    stdin_default: Literal["pipe", "null"] = Field(default="pipe", description="Input of a command that names none.")
    output_retention_bytes: int = Field(default=256 * 1024, description="How much of its output is kept.")
    process_timeout_seconds: int = Field(default=30, description="Time limit of commands; 0: none.")
    pending_bias: Literal["prefer", "require"] = Field(default="prefer", description="Gate while a preview waits.")
