"""What every patch writer promises, one test a promise; both ways of swapping are lawful implementations."""

import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.patch_writer.writer import ExchangePatchWriter
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.patch_writer import PatchOrder, PatchWriter, SettleImpossibleError
from codespace_es.vocabulary.file_change import PlannedFile, digest_of
from support.crash_orders import EIGHT_FILES, FOUR_FILES, ONE_FILE, SCENARIOS, Scenario, Target, snapshot

names = [scenario.name for scenario in SCENARIOS]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(params=[True, False], ids=["exchange", "plain"])
def writer(request: pytest.FixtureRequest) -> PatchWriter:
    return ExchangePatchWriter(has_exchange=request.param)


def built(scenario: Scenario, root: Path) -> tuple[Path, PatchOrder]:
    scenario.build(root)
    return root, scenario.order(root)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=names)
def test_an_applied_patch_leaves_exactly_what_was_planned(
    writer: PatchWriter, scenario: Scenario, tmp_path: Path
) -> None:
    root, order = built(scenario, tmp_path / "tree")
    outcome = writer.write(order)
    assert outcome.status == "applied"
    assert outcome.findings == ()
    assert outcome.fault is None
    assert snapshot(root) == scenario.expected_after(tmp_path / "after")


def test_the_outcome_says_whether_every_swap_was_atomic(tmp_path: Path) -> None:
    _, order = built(ONE_FILE, tmp_path / "one")
    assert ExchangePatchWriter().write(order).is_swap_atomic
    _, order = built(ONE_FILE, tmp_path / "two")
    assert not ExchangePatchWriter(has_exchange=False).write(order).is_swap_atomic


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("run.sh", "VERSION_CONFLICT"), ("gone/only.txt", "VERSION_CONFLICT"), ("src/from.py", "VERSION_CONFLICT"),
        ("docs/deep/new.md", "ADD_FILE_EXISTS"), ("src/to.py", "MOVE_DESTINATION_EXISTS"),
    ],
)
def test_a_file_that_changed_since_the_plan_undoes_everything_and_stays(
    writer: PatchWriter, path: str, code: str, tmp_path: Path
) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(b"somebody's edit")
    before = snapshot(root)
    outcome = writer.write(order)
    assert outcome.status == "failed_rolled_back"
    assert outcome.fault is not None
    assert outcome.fault.code == code
    assert outcome.fault.detail == {"path": path}
    assert snapshot(root) == before
    assert {f.path: f.found for f in outcome.findings} == {
        row.path: "foreign" if row.path == path else "before" for row in order.plan
    }


@pytest.mark.parametrize("path", ["run.sh", "gone/only.txt", "src/from.py"])
@pytest.mark.parametrize("becomes", ["missing", "directory", "symlink", "fifo", "other_mode"])
def test_a_path_that_became_something_else_is_a_conflict_and_stays(
    writer: PatchWriter, path: str, becomes: str, tmp_path: Path
) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    target = root / path
    if becomes != "other_mode":
        target.unlink()
    match becomes:
        case "directory":
            target.mkdir()
            (target / "inside").write_text("x")
        case "symlink":
            target.symlink_to("elsewhere")
        case "fifo":
            os.mkfifo(target)
        case "other_mode":
            target.chmod(0o777)
    before = snapshot(root)
    outcome = writer.write(order)
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.code) == ("failed_rolled_back", "VERSION_CONFLICT")
    assert snapshot(root) == before


def test_a_parent_that_is_a_link_is_refused_and_nothing_is_written_through_it(
    writer: PatchWriter, tmp_path: Path
) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    outside = tmp_path / "outside"
    (root / "src").rename(outside)
    (root / "src").symlink_to(outside)
    before = snapshot(tmp_path)
    outcome = writer.write(order)
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.code) == ("failed_rolled_back", "SYMLINK_REJECTED")
    assert snapshot(tmp_path) == before
    assert {f.path: f.found for f in writer.inspect(order)}["src/from.py"] == "not_a_file"


@pytest.mark.parametrize("point", [FaultPoint.TEMP_CREATE, FaultPoint.INSTALL, FaultPoint.VERIFY])
def test_a_parent_that_is_exchanged_on_the_way_is_a_conflict_and_undone(point: FaultPoint, tmp_path: Path) -> None:
    scenario = Scenario("moved", {"d/f": (b"1", 0o644)}, {"d/f": Target(b"2"), "d/g": Target(b"3")})
    root, order = built(scenario, tmp_path / "tree")

    def exchange_parent(at: FaultPoint) -> None:
        if at == point and not (root / "moved").exists():
            (root / "d").rename(root / "moved")
            (root / "d").mkdir()
            (root / "d/f").write_bytes(b"2")

    outcome = ExchangePatchWriter(exchange_parent).write(order)
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.code) == ("failed_rolled_back", "VERSION_CONFLICT")
    files = {path: seen for path, seen in snapshot(root).items() if "/" in path}
    assert files == {"moved/f": (b"1", 0o644), "d/f": (b"2", 0o644)}


def test_a_parent_that_is_gone_is_a_conflict_for_a_file_and_a_failure_for_a_new_one(
    writer: PatchWriter, tmp_path: Path
) -> None:
    scenario = Scenario("gone", {"d/f": (b"1", 0o644)}, {"d/f": Target(b"2")})
    root, order = built(scenario, tmp_path / "tree")
    (root / "d/f").unlink()
    (root / "d").rmdir()
    fault = writer.write(order).fault
    assert fault is not None
    assert fault.code == "VERSION_CONFLICT"
    new = Scenario("new", {}, {"d/g": Target(b"2")})
    fault = writer.write(new.order(root)).fault
    assert fault is not None
    assert fault.code == "FILE_OPERATION_FAILED"
    assert "d" in fault.message


def test_a_root_that_is_gone_is_an_outcome_for_write_and_postponed_by_settle(
    writer: PatchWriter, tmp_path: Path
) -> None:
    order = ONE_FILE.order(tmp_path / "nowhere")
    outcome = writer.write(order)
    assert outcome.status == "failed_rolled_back"
    assert outcome.fault is not None
    with pytest.raises(SettleImpossibleError):
        writer.settle(order)


def test_a_directory_somebody_made_meanwhile_is_used_and_not_removed_by_undoing(tmp_path: Path) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    (root / "docs").mkdir()

    def fail_at_verify(point: FaultPoint) -> None:
        if point == FaultPoint.VERIFY:
            raise OSError(5, "Input/output error")

    before = snapshot(root)
    assert ExchangePatchWriter(fail_at_verify).write(order).status == "failed_rolled_back"
    assert snapshot(root) == before
    assert ExchangePatchWriter().write(order).status == "applied"


def test_a_made_directory_in_which_somebody_put_a_file_stays(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    (root / "docs/deep").mkdir(parents=True)
    (root / "docs/mine").write_text("mine")
    assert writer.settle(order).status == "failed_rolled_back"
    assert (root / "docs/mine").read_text() == "mine"
    assert not (root / "docs/deep").exists()


def test_private_content_is_never_readable_by_others(tmp_path: Path) -> None:
    scenario = Scenario("key", {"key": (b"old secret", 0o600)}, {"key": Target(b"new secret")})
    root, order = built(scenario, tmp_path / "tree")
    seen: set[int] = set()

    def watch(_point: FaultPoint) -> None:
        seen.update(stat.S_IMODE(path.lstat().st_mode) for path in root.iterdir())

    assert ExchangePatchWriter(watch).write(order).status == "applied"
    assert seen == {0o600}


def test_temporary_names_fit_beside_the_longest_name(writer: PatchWriter, tmp_path: Path) -> None:
    scenario = Scenario("long", {"n" * 255: (b"1", 0o644)}, {"n" * 255: Target(b"2"), "m" * 255: Target(b"3")})
    root, order = built(scenario, tmp_path / "tree")
    assert writer.write(order).status == "applied"
    assert (root / ("n" * 255)).read_bytes() == b"2"


def test_names_that_are_not_utf8_are_written(writer: PatchWriter, tmp_path: Path) -> None:
    scenario = Scenario("raw", {"d\udcff/f\udcfe": (b"1", 0o644)}, {"d\udcff/f\udcfe": Target(b"2")})
    root, order = built(scenario, tmp_path / "tree")
    assert writer.write(order).status == "applied"
    assert Path(os.fsdecode(os.fsencode(root) + b"/d\xff/f\xfe")).read_bytes() == b"2"


def test_attributes_are_kept_on_update_and_move(writer: PatchWriter, tmp_path: Path) -> None:
    scenario = Scenario(
        "attributes", {"a": (b"1", 0o644), "b": (b"2", 0o644)},
        {"a": Target(b"1!"), "b": Target(None), "c": Target(b"2!", moved_from="b")},
    )
    root, order = built(scenario, tmp_path / "tree")
    try:
        os.setxattr(root / "a", "user.note", b"of a")
        os.setxattr(root / "b", "user.note", b"of b")
    except OSError:
        pytest.skip("no extended attributes here")
    assert writer.write(order).status == "applied"
    assert os.getxattr(root / "a", "user.note") == b"of a"
    assert os.getxattr(root / "c", "user.note") == b"of b"


@needs_root
def test_the_owner_is_kept_where_permitted(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(Scenario("owner", {"a": (b"1", 0o640)}, {"a": Target(b"2")}), tmp_path / "tree")
    os.chown(root / "a", 1234, 4321)
    assert writer.write(order).status == "applied"
    status = (root / "a").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o640)


def test_another_name_of_an_updated_file_keeps_the_old_content(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(ONE_FILE, tmp_path / "tree")
    os.link(root / "a.txt", root / "b.txt")
    assert writer.write(order).status == "applied"
    assert digest_of((root / "b.txt").read_bytes()) == order.plan[0].before
    assert digest_of((root / "a.txt").read_bytes()) == order.plan[0].after


def test_undoing_gives_the_very_same_file_back(tmp_path: Path) -> None:
    root, order = built(EIGHT_FILES, tmp_path / "tree")
    before = {path: (root / path).stat() for path in EIGHT_FILES.files}

    def fail_at_verify(point: FaultPoint) -> None:
        if point == FaultPoint.VERIFY:
            raise OSError(28, "No space left on device")

    assert ExchangePatchWriter(fail_at_verify).write(order).status == "failed_rolled_back"
    after = {path: (root / path).stat() for path in EIGHT_FILES.files}
    assert {path: (s.st_ino, s.st_mtime_ns) for path, s in after.items()} == {
        path: (s.st_ino, s.st_mtime_ns) for path, s in before.items()
    }


@pytest.mark.parametrize("path", ["run.sh", "gone/only.txt"])
def test_a_write_through_an_open_descriptor_is_seen_and_kept(path: str, tmp_path: Path) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    with (root / path).open("ab", buffering=0) as editor:

        def append_before_verifying(point: FaultPoint) -> None:
            if point == FaultPoint.VERIFY and editor.tell() == len(FOUR_FILES.files[path][0]):
                editor.write(b"late words")

        outcome = ExchangePatchWriter(append_before_verifying).write(order)
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.code) == ("failed_rolled_back", "VERSION_CONFLICT")
    assert (root / path).read_bytes() == FOUR_FILES.files[path][0] + b"late words"


def test_an_edit_right_after_the_install_is_left_and_told(tmp_path: Path) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")

    def edit_at_verify(point: FaultPoint) -> None:
        if point == FaultPoint.VERIFY:
            (root / "run.sh").write_bytes(b"edited again")

    outcome = ExchangePatchWriter(edit_at_verify).write(order)
    assert outcome.status == "failed_partial"
    assert {f.path: f.found for f in outcome.findings} == {
        row.path: "foreign" if row.path == "run.sh" else "before" for row in order.plan
    }
    assert (root / "run.sh").read_bytes() == b"edited again"
    assert not list(root.rglob("*.tmp"))


def test_an_unplanned_change_of_an_unchanged_file_is_a_conflict(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(EIGHT_FILES, tmp_path / "tree")
    (root / "same.txt").write_bytes(b"changed")
    before = snapshot(root)
    outcome = writer.write(order)
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.code) == ("failed_rolled_back", "VERSION_CONFLICT")
    assert snapshot(root) == before


def test_an_unchanged_file_is_not_touched(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(EIGHT_FILES, tmp_path / "tree")
    before = (root / "same.txt").stat()
    assert writer.write(order).status == "applied"
    after = (root / "same.txt").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino, before.st_mtime_ns, before.st_ctime_ns,
    )


def test_a_missing_image_is_a_failure_before_anything_is_changed(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    before = snapshot(root)
    outcome = writer.write(replace(order, image={}.__getitem__))
    assert outcome.status == "failed_rolled_back"
    assert snapshot(root) == before


def test_settling_ignores_files_that_dont_change_and_none_left_is_applied(writer: PatchWriter, tmp_path: Path) -> None:
    same = digest_of(b"same")
    row = PlannedFile(path="f", kind="update", before=same, after=same, mode=0o644, before_mode=0o644)
    (tmp_path / "f").write_bytes(b"changed by somebody")
    outcome = writer.settle(replace(ONE_FILE.order(tmp_path), plan=(row,)))
    assert (outcome.status, outcome.findings) == ("applied", ())
    assert (tmp_path / "f").read_bytes() == b"changed by somebody"


def test_inspecting_changes_nothing_and_keeps_the_order_of_the_plan(writer: PatchWriter, tmp_path: Path) -> None:
    root, order = built(FOUR_FILES, tmp_path / "tree")
    (root / "run.sh").write_bytes(b"foreign")
    (root / "gone/only.txt").unlink()
    before = snapshot(root)
    assert [(f.path, f.found) for f in writer.inspect(order)] == [
        ("run.sh", "foreign"), ("docs/deep/new.md", "before"), ("gone/only.txt", "after"),
        ("src/from.py", "before"), ("src/to.py", "before"),
    ]
    assert snapshot(root) == before


def test_no_descriptor_stays_open(writer: PatchWriter, tmp_path: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    _, order = built(EIGHT_FILES, tmp_path / "tree")
    _, conflicting = built(FOUR_FILES, tmp_path / "other")
    (tmp_path / "other/run.sh").write_bytes(b"x")
    before = open_descriptors()
    writer.write(order)
    writer.write(conflicting)
    writer.settle(order)
    writer.inspect(order)
    assert open_descriptors() == before


def test_many_files_are_written_with_batches_of_open_files(writer: PatchWriter, tmp_path: Path) -> None:
    targets = {f"f{n}": Target(b"%d" % n) for n in range(200)}
    root, order = built(Scenario("many", {}, targets), tmp_path / "tree")
    assert writer.write(order).status == "applied"
    assert snapshot(root) == {path: (target.content, 0o644) for path, target in targets.items()}


def test_two_workspaces_are_written_at_once_by_one_writer(writer: PatchWriter, tmp_path: Path) -> None:
    statuses: list[str] = []
    orders = [built(EIGHT_FILES, tmp_path / f"tree{n}")[1] for n in range(4)]
    threads = [threading.Thread(target=lambda o=order: statuses.append(writer.write(o).status)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == ["applied"] * 4


CONTENTS = st.binary(max_size=40)
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o400])


@given(data=st.data())
def test_any_plan_applies_and_its_inverse_gives_the_first_tree_back(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("inverse")
    paths = [f"{parent}{name}" for parent in ("", "d/", "d/e/") for name in "xyz"]
    files = data.draw(st.dictionaries(st.sampled_from(paths), st.tuples(CONTENTS, MODES), max_size=6))
    targets = {
        path: Target(data.draw(CONTENTS if path not in files else st.none() | CONTENTS), mode=None)
        for path in data.draw(st.lists(st.sampled_from(paths), unique=True, max_size=6))
    }
    forth = Scenario("forth", files, targets, directories=("d/e",))
    root, order = built(forth, directory / "tree")
    before = snapshot(root)
    writer = ExchangePatchWriter()
    assert writer.write(order).status == "applied"
    assert snapshot(root) == forth.expected_after(directory / "after")
    written = {
        row.path: (forth.targets[row.path].content or b"", row.mode or 0)
        for row in order.plan if forth.targets[row.path].content is not None
    }
    back = Scenario(
        "back", written,
        {path: Target(*files.get(path, (None, None))) for path in targets},
    )
    assert writer.write(back.order(root)).status == "applied"
    assert snapshot(root) == before
