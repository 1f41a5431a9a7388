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
    protected_paths: tuple[str, ...] = Field(default=(), description="Globs that patches never write; .git always.")
    patch_matching: PatchMatching = Field(default="lenient", description="How hunks may match.")
    pending_bias: Literal["prefer", "require"] = Field(default="prefer", description="Gate while a preview waits.")
