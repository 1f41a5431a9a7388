"""Files of `verify`: the signing key of a data directory, and checkpoints that are kept elsewhere."""

import os
import secrets
from pathlib import Path

from pydantic import ValidationError

from adapters.settings.directories import make_private_directory
from adapters.settings.problem import StartupError
from adapters.settings.regular_file import read_regular
from replay.checkpoint import Checkpoint

_KEY_BYTES = 32
_CHECKPOINT_BYTES_MAX = 64 * 1024


def key_path(log_path: Path) -> Path:
    """Return where the key of a log's checkpoints is kept: beside the log."""
    return log_path.with_name(log_path.name + ".checkpoint-key")


def read_key(log_path: Path) -> bytes | None:
    """Return the key, None where there is none. Raises StartupError."""
    try:
        key = read_regular(key_path(log_path), bytes_max=_KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StartupError(f"{key_path(log_path)} can't be read: {error.strerror or error}.") from error
    if len(key) != _KEY_BYTES:
        raise StartupError(f"{key_path(log_path)} is damaged: it should have {_KEY_BYTES} bytes.")
    return key


def make_key(log_path: Path) -> bytes:
    """Return the key, made for this user alone if there is none. Raises StartupError.

    Whoever looks at a PostgreSQL from a machine that has served nothing has no data directory yet.
    """
    path = key_path(log_path)
    if not path.parent.exists():
        make_private_directory(path.parent)
    own = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        if not path.exists():
            descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(secrets.token_bytes(_KEY_BYTES))
                    stream.flush()
                    os.fsync(descriptor)
                _link_if_absent(own, path)
            finally:
                own.unlink()
    except OSError as error:
        raise StartupError(f"{path} can't be made: {error.strerror or error}.") from error
    key = read_key(log_path)
    assert key is not None, "it was made just now"
    return key


def _link_if_absent(own: Path, path: Path) -> None:
    try:
        os.link(own, path)
    except FileExistsError:
        return  # another verify was quicker: its key is the key


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint in a file. Raises StartupError if it is none."""
    try:
        return Checkpoint.model_validate_json(read_regular(path, bytes_max=_CHECKPOINT_BYTES_MAX))
    except OSError as error:
        raise StartupError(f"{path} can't be read: {error.strerror or error}.") from error
    except ValidationError as error:
        raise StartupError(f"{path} is no checkpoint of this product.") from error


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint into a new file, or over an earlier checkpoint. Raises StartupError."""
    if path.exists():
        read_checkpoint(path)
    text = checkpoint.model_dump_json(indent=2) + "\n"
    own = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        own.write_text(text, encoding="utf-8")
        own.replace(path)
    except OSError as error:
        raise StartupError(f"{path} can't be written: {error.strerror or error}.") from error
