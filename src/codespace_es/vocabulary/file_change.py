"""What a patch does to files: the images it reads, the plan it mints, the changes a caller is told."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.vocabulary.event import ABSENT, Digest, Version

ChangeKind = Literal["add", "update", "delete", "move"]


def digest_of(content: bytes) -> Digest:
    """Return `sha256:` + 64 lower-case hex digits of `content`."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class FileImage:
    """One regular file as it was read: all its bytes, its permission bits, how many names it has."""

    content: bytes
    mode: int
    links: int = 1

    @property
    def version(self) -> Version:
        """The version of this content."""
        return digest_of(self.content)


class PlannedFile(BaseModel):
    """What one path was when the patch was planned, and what it is to become. One row a path, the net effect.

    A move gives two rows: the source as `delete`, then the destination as `move` with `moved_from`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="Relative to the root, `/` separators.")
    kind: ChangeKind = Field(description="What happens to this path.")
    moved_from: str | None = Field(default=None, description="Where a moved file came from.")
    before: Version = Field(description="Version when planned.")
    after: Version = Field(description="Version that the patch gives it.")
    before_bytes: int | None = Field(default=None, description="Size before; absent when the file was absent.")
    after_bytes: int | None = Field(default=None, description="Size after; absent when it will be absent.")
    mode: int | None = Field(default=None, description="Permission bits that the file will have.")
    before_mode: int | None = Field(default=None, description="Permission bits that it had.")

    @property
    def is_no_change(self) -> bool:
        """The content stays as it is (a context-only update); such a row proves nothing about a crash."""
        return self.before == self.after and self.mode == self.before_mode


class FileFinding(BaseModel):
    """What was found at one planned path when an operation did not simply succeed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="The planned path.")
    found: Literal["before", "after", "foreign", "missing", "not_a_file"] = Field(
        description="`before` and `after` are the planned images; `foreign` is somebody else's content."
    )
    version: Version | None = Field(default=None, description="Version found, where it is a file.")


class FileChange(BaseModel):
    """One entry of `changes` in a tool's answer. Versions that don't apply are left out, never null.

    Source: contract B3.6.
    """

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="Relative path.")
    kind: ChangeKind = Field(description="add, update, delete or move.")
    before_version: Version | None = Field(default=None, description="Version before; left out if it was absent.")
    after_version: Version | None = Field(default=None, description="Version after; left out for a delete.")
    summary: str | None = Field(default=None, description="Lines added and removed, as `+n -m`.")


def change_of(planned: PlannedFile, *, summary: str | None = None, is_after_known: bool = True) -> FileChange:
    """Return what a caller is told of `planned`; `is_after_known` false leaves out what didn't come about."""
    return FileChange(
        path=planned.path,
        kind=planned.kind,
        before_version=None if planned.before == ABSENT else planned.before,
        after_version=None if planned.after == ABSENT or not is_after_known else planned.after,
        summary=summary,
    )
