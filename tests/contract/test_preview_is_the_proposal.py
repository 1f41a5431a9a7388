"""Whatever is staged: apply writes exactly those bytes, or, if one file has changed, nothing at all."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from support.pending import push_edits, resolve
from support.server import Server

NAMES = ["a.py", "ä b.ts", "dir/c.go", "dir/deep/d.rs", "e"]
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(["", "\ufeffx = 1\r\ny\r\n", "\tif é:\r\tpass", "one\n\ntwo", "\U0001d4b3\x00\n", "a" * 3000]).map(
        lambda text: text.encode()
    ),
)
TREES = st.dictionaries(st.sampled_from(NAMES), CONTENTS, max_size=5)
CHANGES = st.dictionaries(st.sampled_from(NAMES), st.none() | CONTENTS, min_size=1, max_size=5)


@dataclass
class Place:
    portal: BlockingPortal
    server: Server
    root: Path


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    scratch = Path(tempfile.mkdtemp(prefix="codespace-proposal-"))
    root = scratch / "ws"
    root.mkdir()
    with start_blocking_portal() as portal:
        server = Server(scratch, {"demo": root})
        portal.call(server.start)
        yield Place(portal, server, root)
        portal.call(server.stop)
    shutil.rmtree(scratch)


def read(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def write(root: Path, tree: dict[str, bytes]) -> None:
    for entry in root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, content in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@settings(max_examples=40)
@given(tree=TREES, changes=CHANGES, meddled=st.none() | st.tuples(st.sampled_from(NAMES), st.none() | CONTENTS))
def test_what_was_staged_is_what_is_written_or_nothing_is(
    place: Place, tree: dict[str, bytes], changes: dict[str, bytes | None],
    meddled: tuple[str, bytes | None] | None,
) -> None:
    changes = {name: after for name, after in changes.items() if after is not None or name in tree}
    if not changes:
        return
    write(place.root, tree)
    place.portal.call(push_edits, place.server, place.root, changes)
    assert read(place.root) == tree, "a preview never changes a file"
    found = dict(tree)
    if meddled is not None:
        name, content = meddled
        found.pop(name, None)
        found |= {} if content is None else {name: content}
        write(place.root, found)
    told = place.portal.call(resolve, place.server)
    if any(found.get(name) != tree.get(name) for name in changes):
        assert told["code"] == "STALE_PREVIEW"
        assert read(place.root) == found
    else:
        assert told["outcome"] == "applied"
        expected = {name: content for name, content in {**found, **changes}.items() if content is not None}
        assert read(place.root) == expected
