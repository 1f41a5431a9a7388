"""Bugs to plant: each is a small edit of the product, and the tests that should not let it live.

The first eleven are the ones that every careless writer of files makes; the rest break a rule of holds, commands,
pending actions, steering or the store. An edit is exact text, so a change of that place has to change it here too.
"""

from dataclasses import dataclass

WRITER = "src/adapters/patch_writer"
HANDLERS = "src/codespace_es/command_handlers"
RULES = "src/codespace_es/aggregates"
SQLITE = "src/adapters/log/sqlite"


@dataclass(frozen=True, slots=True)
class Bug:
    """One edit."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Files of tests, of which one at least has to fail."""


STORY = "tests/crash/test_patch_story_crash.py"
POWER = "tests/crash/test_power_cut_of_log_and_tree.py"
WRITER_CRASH = "tests/crash/test_patch_writer_crash.py"
WRITER_POWER = "tests/crash/test_patch_writer_power_cut.py"
DECISIONS = "tests/unit/aggregates"

BUGS = (
    # Patches
    Bug("a temporary file isn't flushed", f"{WRITER}/temps.py",
        "    os.fsync(descriptor)\n", "    os.fstat(descriptor)\n", (WRITER_POWER, POWER)),
    Bug("a directory isn't flushed", f"{WRITER}/scene.py",
        "    os.fsync(directory)\n", "    os.fstat(directory)\n", (WRITER_POWER, POWER)),
    Bug("the log flushes at checkpoints only", f"{SQLITE}/connecting.py",
        "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL", (POWER,)),
    Bug("an undo goes by memory, noted after the act", f"{WRITER}/transaction.py",
        """            self._begun.add(number)
            try:
                self._change(number, row, place)
            except DisplacedError:
                self._begun.discard(number)
                raise _conflict(row) from None
""", """            try:
                self._change(number, row, place)
            except DisplacedError:
                raise _conflict(row) from None
            self._begun.add(number)
""", (WRITER_CRASH,)),
    Bug("the end is recorded before the files are written", f"{HANDLERS}/writing.py",
        "            outcome = await to_thread.run_sync(self.world.patch_writer.write, order)\n",
        """            early = WriteOutcome("applied")
            await append_end(self.world, minted, _finished(early), self._told(prepared, "applied"), self.caller)
            outcome = await to_thread.run_sync(self.world.patch_writer.write, order)
""", (STORY,)),
    Bug("the files are written before the decision is on record", f"{HANDLERS}/writing.py",
        "        if not await self._mint(minted, prepared.images):\n",
        """        early = PatchOrder(
            operation_id=self.operation_id, root=self.request.workspace.root, plan=minted.plan,
            made_directories=minted.made_directories, image=prepared.images.__getitem__,
            removed_directories=minted.removed_directories,
        )
        await to_thread.run_sync(self.world.patch_writer.write, early)
        if not await self._mint(minted, prepared.images):
""", (STORY,)),
    Bug("recovery takes somebody's file for ours", f"{WRITER}/recovery.py",
        '    if found <= {"after"}:\n', '    if found <= {"after", "foreign"}:\n', (WRITER_CRASH, STORY)),
    Bug("one write is taken for a whole one", f"{WRITER}/temps.py",
        "    while content:\n        content = content[os.write(descriptor, content) :]\n",
        "    os.write(descriptor, content)\n", ("tests/crash/test_patch_writer_races.py",)),
    Bug("a file is written in place", f"{WRITER}/transaction.py",
        """            self._scene.swaps.replace(
                place, temp, installs=row.after, expects=is_as_planned, swapped=FaultPoint.INSTALL_SWAPPED
            )
""", """            descriptor = os.open(place.name, os.O_WRONLY | os.O_TRUNC, dir_fd=place.directory)
            self._scene.faults(FaultPoint.INSTALL_SWAPPED)
            os.write(descriptor, self._scene.image(row.after))
            os.close(descriptor)
            unlink(place, temp)
""", (WRITER_CRASH,)),
    Bug("temporary files are left behind by recovery", f"{WRITER}/recovery.py",
        "    left = scene.sweep()\n", "    left: list[str] = []\n", (WRITER_CRASH,)),
    Bug("a repeat isn't looked up once the lease is held", f"{HANDLERS}/writing.py",
        "        replay = await _replay(world, request, is_leased=True)\n", "        replay = None\n",
        ("tests/crash/test_interleavings.py", STORY)),
    # Holds
    Bug("a hold may be granted after its time", f"{RULES}/approval.py",
        """            _require(isinstance(state, Pending) and not is_due(state, now), state, now)
            return [ApprovalGranted(reason=reason)]
""", """            _require(isinstance(state, Pending), state, now)
            return [ApprovalGranted(reason=reason)]
""", (DECISIONS,)),
    Bug("a grant counts although its channel may grant no more", f"{HANDLERS}/resuming.py",
        "    if channel is None or not policy.may_grant(workspace, channel):\n", "    if channel is None:\n",
        ("tests/contract/test_approvals.py", "tests/model/test_approval_machine.py")),
    Bug("a granted hold may be denied", f"{RULES}/approval.py",
        "    return isinstance(state, Pending) or state.created.action_id is not None\n", "    return True\n",
        (DECISIONS,)),
    Bug("a resume that is parked can't be tried again", f"{RULES}/approval.py",
        "            _require(isinstance(state, Granted | Parked) and not is_due(state, now), state, now)\n",
        "            _require(isinstance(state, Granted) and not is_due(state, now), state, now)\n", (DECISIONS,)),
    # Commands
    Bug("a command runs before it is on record", f"{HANDLERS}/executing.py",
        "                if not await self._record_spawn(process_id, child, spawned, bound):\n",
        """                await child.go()
                if not await self._record_spawn(process_id, child, spawned, bound):
""", ("tests/crash/test_command_crash.py",)),
    Bug("an end that is asked for twice is recorded twice", f"{RULES}/process.py",
        "            is_first = isinstance(state, Running) and state.end_requested is None\n",
        "            is_first = isinstance(state, Running)\n", (DECISIONS, "tests/contract/test_end_requests.py")),
    Bug("what outlived all who watched it is left alone", f"{HANDLERS}/settling.py",
        "            await world.runner.end_orphan(orphan_of(process_id, state.spawned))\n", "            pass\n",
        ("tests/crash/test_command_crash.py",)),
    Bug("a repeat of a command says that a lost one ran", f"{HANDLERS}/dispatching.py",
        'return "unknown" if isinstance(state, Exited) and state.exited.termination == "unknown" else "confirmed"',
        'return "confirmed"',
        ("tests/crash/test_command_crash.py",)),
    Bug("what waits is begun by a server that ends", "src/codespace_es/admission.py",
        "    if world.live.is_closing:  # the end of a command has let the next in the queue have it\n",
        "    if False:\n", ("tests/contract/test_ending_calls.py",)),
    # Pending actions
    Bug("any action may be resolved, not the newest alone", f"{RULES}/pending/rules.py",
        "            require_top(state, started.action_id)\n            return [started]\n",
        "            return [started]\n", (DECISIONS, "tests/contract/test_resolve.py")),
    Bug("a stack has no bound", f"{RULES}/pending/rules.py",
        "            _require_room(state)\n            return [pushed]\n", "            return [pushed]\n",
        (DECISIONS,)),
    Bug("a callback may go on after its resolve is over", f"{RULES}/pending/rules.py",
        "    if not isinstance(state, Resolving) or state.action.action_id != action_id:\n",
        "    if not isinstance(state, Resolving):\n", (DECISIONS, "tests/contract/test_resolve.py")),
    Bug("what is being resolved is orphaned under its operation", f"{RULES}/pending/rules.py",
        "next((each for each in state.actions if each.action_id == action_id), None)", "find(state, action_id)",
        ("tests/crash/test_interleavings_of_resolves.py",)),
    Bug("a grant is used up by a server that can't run it", f"{HANDLERS}/gating.py",
        "    elif created.action_id is not None:\n", "    elif created.action_id is None:\n",
        ("tests/contract/test_pending_sessions.py",)),
    # Steering
    Bug("who claims too late is told of the same", f"{HANDLERS}/steering.py",
        "        except VersionConflictError:\n            continue\n        return steered",
        "        except VersionConflictError:\n            pass\n        return steered",
        ("tests/crash/test_interleavings_of_steering.py",)),
    Bug("a work is closed over what is pushed at the same moment", f"{HANDLERS}/finishing.py",
        "            events += stack.folded.decide(LeaveStack(left))\n", "            pass\n",
        ("tests/crash/test_interleavings_of_resolves.py",)),
    # The store
    Bug("a gap between versions is let in", f"{SQLITE}/committer.py",
        "            if submission.is_gapless:\n", "            if submission.is_gapless and not versions and False:\n",
        ("tests/contract/test_event_log.py",)),
    Bug("one that was declared dead may append", f"{SQLITE}/committer.py",
        "            if not open_rows.is_instance_open(self._connection, instance_id):\n",
        "            if not instance_id:\n", ("tests/contract/test_event_log.py",)),
    Bug("a failed commit leaves the cached head", f"{SQLITE}/committer.py",
        "        self._head = None\n        self._instance_open = None\n        self._note(error)\n",
        "        self._note(error)\n", ("tests/contract/test_event_log.py",)),
    Bug("a commit without an answer is told as not stored", f"{SQLITE}/committer.py",
        "                is_stored = self._is_stored(submission)\n", "                is_stored = False\n",
        ("tests/contract/test_event_log.py",)),
    Bug("the chain leaves out the version", "src/adapters/log/chain.py",
        "_VERSION_AND_TOPIC_LENGTH(8, version, len(topic))", "_VERSION_AND_TOPIC_LENGTH(8, 1, len(topic))",
        ("tests/replay/test_verify_finds_damage.py", "tests/unit/log")),
)
