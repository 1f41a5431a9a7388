"""Any sequence of people writing and agents claiming, on two servers over one store.

The invariants after every step: no agent sees a draft; what is claimed is frozen; both servers tell the same; no intent
is claimed twice between two releases. Source: contract B6, T-U13.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from codespace_es.command_handlers import inbox, steering
from codespace_es.command_handlers.finishing import FinishWorkCommand
from codespace_es.command_handlers.reading import DescribeWorkspace
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Channel
from support.effort import examples
from support.machines import end_whole
from support.memory import MEMORY
from support.server import Server

SERVERS = st.sampled_from(["left", "right"])
DELIVERIES = st.sampled_from(["next_checkpoint", "after_current_work", "next_work"])
PICKS = st.integers(0, 7)
UNCLAIMED = ("draft", "queued")


@dataclass
class Intent:
    """An intent as the model knows it."""

    intent_id: str
    work_id: str | None
    delivery: str
    body: str | None
    """None: a stop for which no reason was given."""
    state: str = "draft"
    revision: int = 1
    position: int = 1


@dataclass
class Work:
    """A work as the model knows it."""

    state: str = "active"
    revision: int = 1


@dataclass
class Model:
    """What should be so."""

    works: dict[str, Work] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)
    """What is claimed, the oldest first."""

    def of(self, work_id: str | None) -> list[Intent]:
        """Return the intents of a work, by position."""
        return sorted((each for each in self.intents.values() if each.work_id == work_id), key=lambda i: i.position)

    def claimable(self, work_id: str) -> list[Intent]:
        """Return what a claim could give, in order."""
        wanted = {"active": {"next_checkpoint"}, "closing": {"next_checkpoint", "after_current_work"}, "closed": set()}
        allowed = wanted[self.works[work_id].state]
        return [each for each in self.of(work_id) if each.state == "queued" and each.delivery in allowed]

    def last_position(self, work_id: str | None) -> int:
        """Return the highest position in a queue."""
        return max((each.position for each in self.of(work_id)), default=0)

    def touch(self, work_id: str | None) -> None:
        """Note a change in a queue."""
        if work_id is not None:
            self.works[work_id].revision += 1


class Steering(RuleBasedStateMachine):
    """Two servers, one store, one workspace, some works."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(dir=MEMORY, prefix="codespace-model-"))
        (self.scratch / "ws").mkdir()
        self.portal_context = start_blocking_portal()
        self.portal = self.portal_context.__enter__()
        self.servers: dict[str, Server] = {}
        self.model = Model()

    @initialize()
    def begin(self) -> None:
        """Two servers and a work."""
        for name in ("left", "right"):
            self._begin(name)
        self.open_work("left")

    def _begin(self, name: str) -> None:
        server = Server(self.scratch, {"ws": self.scratch / "ws"}, settles_at_start=False)
        self.servers[name] = self.portal.call(server.start)

    def _ask(self, name: str, command: Command, channel: Channel = "mcp") -> dict[str, Any]:
        return self.portal.call(_answer, self.servers[name], command, channel)

    def _work(self, pick: int) -> str:
        return list(self.model.works)[pick % len(self.model.works)]

    def _intent(self, pick: int) -> Intent | None:
        intents = list(self.model.intents.values())
        return intents[pick % len(intents)] if intents else None

    # People

    @rule(name=SERVERS, pick=PICKS, delivery=DELIVERIES, body=st.text(max_size=5))
    def draft(self, name: str, pick: int, delivery: str, body: str) -> None:
        """A draft goes to the end of its work, or waits for the next work."""
        work_id = self._work(pick)
        command = inbox.WriteIntent.model_validate({"work_id": work_id, "body": body, "delivery": delivery})
        wire = self._ask(name, command, "cli")
        is_open = self.model.works[work_id].state != "closed"
        intent = Intent(
            wire["intent_id"], work_id if is_open else None, delivery if is_open else "next_work", body,
            position=self.model.last_position(work_id if is_open else None) + 1,
        )
        self.model.intents[intent.intent_id] = intent
        self.model.touch(intent.work_id)

    @rule(name=SERVERS, pick=PICKS, body=st.text(max_size=5), stale=st.booleans())
    def edit(self, name: str, pick: int, body: str, stale: bool) -> None:
        """Claimed is said before ended, and ended before stale."""
        intent = self._intent(pick)
        if intent is None:
            return
        command = inbox.EditIntentCommand(
            intent_id=intent.intent_id, revision=intent.revision + stale, body=body
        )
        wire = self._ask(name, command, "cli")
        if intent.state == "claimed":
            assert wire["code"] == "INTENT_ALREADY_CLAIMED"
        elif intent.state not in UNCLAIMED:
            assert wire["code"] == "INTENT_NOT_EDITABLE"
        elif stale:
            assert wire["code"] == "INTENT_REVISION_CONFLICT"
        else:
            intent.body, intent.revision = body, intent.revision + 1
            self.model.touch(intent.work_id)
            assert (wire["body"], wire["revision"]) == (body, intent.revision)

    @rule(name=SERVERS, pick=PICKS, stale=st.sampled_from([False, False, True]))
    def queue(self, name: str, pick: int, stale: bool) -> None:
        """A draft at its present revision."""
        intent = self._intent(pick)
        if intent is None:
            return
        command = inbox.QueueIntentCommand(intent_id=intent.intent_id, revision=intent.revision + stale)
        wire = self._ask(name, command, "cli")
        if intent.state != "draft":
            assert wire["code"] == "INTENT_NOT_EDITABLE"
        elif stale:
            assert wire["code"] == "INTENT_REVISION_CONFLICT"
        else:
            intent.state, intent.revision = "queued", intent.revision + 1
            self.model.touch(intent.work_id)

    @rule(name=SERVERS, pick=PICKS, data=st.data())
    def reorder(self, name: str, pick: int, data: st.DataObject) -> None:
        """Exactly the queued ones; a name too many or too few changes nothing."""
        work_id = self._work(pick)
        queued = [each.intent_id for each in self.model.of(work_id) if each.state == "queued"]
        order = data.draw(st.permutations(queued))
        wrong = data.draw(st.sampled_from(["", "", "twice", "less"]))
        sent = {"": order, "twice": [*order, *order[:1]], "less": order[1:]}[wrong]
        wire = self._ask(name, inbox.ReorderIntentsCommand(work_id=work_id, intent_ids=tuple(sent)), "cli")
        if sent != order:
            assert wire["code"] == "INVALID_ARGUMENT"
            return
        for position, intent_id in enumerate(order, start=1):
            self.model.intents[intent_id].position = position
        if order:
            self.model.touch(work_id)

    @rule(name=SERVERS, pick=PICKS)
    def cancel(self, name: str, pick: int) -> None:
        """Nobody has it yet."""
        intent = self._intent(pick)
        if intent is None:
            return
        wire = self._ask(name, inbox.CancelIntentCommand(intent_id=intent.intent_id), "cli")
        if intent.state in UNCLAIMED:
            intent.state = "cancelled"
            self.model.touch(intent.work_id)
        else:
            assert wire["code"] == (
                "INTENT_ALREADY_CLAIMED" if intent.state == "claimed" else "INTENT_NOT_EDITABLE"
            )

    @rule(name=SERVERS, pick=PICKS)
    def release(self, name: str, pick: int) -> None:
        """A claimed one goes back to its place."""
        intent = self._intent(pick)
        if intent is None:
            return
        wire = self._ask(name, inbox.ReleaseIntentCommand(intent_id=intent.intent_id), "cli")
        if intent.state == "claimed":
            intent.state = "queued"
            self.model.claims.remove(intent.intent_id)
            self.model.touch(intent.work_id)
        else:
            assert wire["code"] == "INTENT_NOT_EDITABLE"

    @rule(name=SERVERS, pick=PICKS, reason=st.none() | st.just("wait"))
    def stop(self, name: str, pick: int, reason: str | None) -> None:
        """A notice that an open work has already, and that waits where the work is closed."""
        work_id = self._work(pick)
        wire = self._ask(name, inbox.StopWorkCommand(work_id=work_id, reason=reason), "cli")
        notice, is_open = wire["intent"], self.model.works[work_id].state != "closed"
        target = work_id if is_open else None
        assert (notice["kind"], notice.get("work_id")) == ("stop_notice", target)
        self.model.intents[notice["intent_id"]] = Intent(
            notice["intent_id"], target, "next_checkpoint", reason, "claimed" if is_open else "queued",
            position=self.model.last_position(target) + 1,
        )
        if is_open:
            self.model.claims.append(notice["intent_id"])
        self.model.touch(target)

    # Agents

    @rule(name=SERVERS)
    def open_work(self, name: str) -> None:
        """It takes over what waits."""
        if len(self.model.works) >= 3:
            return
        work_id = self._ask(name, steering.OpenWorkCommand(workspace_id="ws"))["work_id"]
        waiting = [each for each in self.model.of(None) if each.state in UNCLAIMED]
        self.model.works[work_id] = Work()
        for position, intent in enumerate(waiting, start=1):
            intent.work_id, intent.position, intent.revision = work_id, position, intent.revision + 1
            if intent.delivery == "next_work":
                intent.delivery = "after_current_work"

    @rule(name=SERVERS, pick=PICKS)
    def claim(self, name: str, pick: int) -> None:
        """The first that may be claimed, with its text."""
        work_id = self._work(pick)
        wire = self._ask(name, steering.ClaimNextCommand(work_id=work_id))
        if self.model.works[work_id].state == "closed":
            assert wire["code"] == "WORK_CLOSED"
            return
        expected = self.model.claimable(work_id)[:1]
        assert ("item" in wire) == bool(expected)
        for intent in expected:
            self._given(intent, wire["item"])

    @rule(pick=PICKS)
    def claim_on_both_at_once(self, pick: int) -> None:
        """Two agents never get the same."""
        work_id = self._work(pick)
        if self.model.works[work_id].state == "closed":
            return
        wires = self.portal.call(_both, list(self.servers.values()), steering.ClaimNextCommand(work_id=work_id))
        expected = self.model.claimable(work_id)[:2]
        items = {wire["item"]["intent_id"]: wire["item"] for wire in wires if "item" in wire}
        assert set(items) == {each.intent_id for each in expected}
        assert sum("item" in wire for wire in wires) == len(expected)
        for intent in expected:
            self._given(intent, items[intent.intent_id])

    def _given(self, intent: Intent, item: dict[str, Any]) -> None:
        assert (item["intent_id"], item["content"], item["revision"]) == (
            intent.intent_id, intent.body, intent.revision
        )
        assert "redelivered" not in item
        intent.state = "claimed"
        self.model.claims.append(intent.intent_id)
        self.model.touch(intent.work_id)

    @rule(name=SERVERS, pick=PICKS)
    def redeliver(self, name: str, pick: int) -> None:
        """The oldest claimed one of the work; it changes nothing."""
        work_id = self._work(pick)
        wire = self._ask(name, steering.ClaimNextCommand(work_id=work_id, redeliver=True))
        if self.model.works[work_id].state == "closed":
            assert wire["code"] == "WORK_CLOSED"
            return
        claimed = [each for each in self.model.claims if self.model.intents[each].work_id == work_id]
        if claimed:
            assert (wire["item"]["intent_id"], wire["item"]["redelivered"]) == (claimed[0], True)
        else:
            assert "item" not in wire

    @rule(name=SERVERS, pick=PICKS, work=PICKS, outcome=st.sampled_from(["done", "blocked"]))
    def complete(self, name: str, pick: int, work: int, outcome: str) -> None:
        """A claimed one of this work."""
        intent, work_id = self._intent(pick), self._work(work)
        if intent is None:
            return
        command = steering.CompleteIntentCommand(work_id=work_id, intent_id=intent.intent_id, outcome=outcome)
        wire = self._ask(name, command)
        if intent.work_id != work_id:
            assert wire["code"] == "INTENT_NOT_FOUND"
        elif intent.state != "claimed":
            assert wire["code"] == "INTENT_NOT_EDITABLE"
        else:
            assert wire["state"] == outcome
            intent.state = outcome
            self.model.claims.remove(intent.intent_id)
            self.model.touch(work_id)

    @rule(name=SERVERS, pick=PICKS)
    def finish(self, name: str, pick: int) -> None:
        """Held up, closing or closed, in this order."""
        work_id = self._work(pick)
        work, intents = self.model.works[work_id], self.model.of(work_id)
        wire = self._ask(name, FinishWorkCommand(work_id=work_id))
        if work.state == "closed":
            assert wire["code"] == "WORK_CLOSED"
            return
        first = sum(
            each.state == "claimed" or (each.state, each.delivery) == ("queued", "next_checkpoint") for each in intents
        )
        after = sum((each.state, each.delivery) == ("queued", "after_current_work") for each in intents)
        if not first:
            work.state = "closing" if after else "closed"
        assert (wire["closed"], wire["queued"], wire["state"]) == (not first + after, first + after, work.state)
        assert wire.get("reason") == ("pending_user_input" if first + after else None)
        if work.state == "closed":
            for intent in intents:
                if intent.state in UNCLAIMED:
                    position = self.model.last_position(None) + 1
                    intent.work_id, intent.position = None, position

    @rule(name=SERVERS)
    def restart(self, name: str) -> None:
        """Nothing of it lives in a server."""
        self.portal.call(self.servers[name].die)
        self._begin(name)

    # What always holds

    @invariant()
    def agents_see_counts_and_never_drafts(self) -> None:
        """The same on either server, with no text."""
        for work_id, work in self.model.works.items():
            intents = self.model.of(work_id)
            for name in self.servers:
                wire = self._ask(name, steering.AskWork(work_id=work_id))
                claimed = [each.intent_id for each in intents if each.state == "claimed"]
                assert wire == {
                    "work_id": work_id, "state": work.state, "queue_revision": work.revision,
                    "queued": sum(each.state == "queued" for each in intents),
                    "claimed": len(claimed), "claimed_ids": claimed,
                    "claimable_now": len(self.model.claimable(work_id)),
                }

    @invariant()
    def people_see_all(self) -> None:
        """Every intent with its text, as the model has it; the claimed one unchanged since its claim."""
        for work_id in self.model.works:
            told = self._ask("left", inbox.ListIntents(work_id=work_id), "cli")["intents"]
            for each in told:
                known = self.model.intents[each["intent_id"]]
                assert (each["state"], each["revision"], each["position"], each["delivery"], each.get("body")) == (
                    known.state, known.revision, known.position, known.delivery, known.body
                )
            both = {each.intent_id for each in [*self.model.of(work_id), *self.model.of(None)]}
            assert {each["intent_id"] for each in told} == both

    @invariant()
    def a_hint_is_given_where_it_is_clear_which_work_is_meant(self) -> None:
        """With no work named, of the only open one."""
        if not self.servers:
            return
        hint = self._ask("right", DescribeWorkspace(workspace_id="ws")).get("coordination")
        open_works = [work_id for work_id, work in self.model.works.items() if work.state != "closed"]
        if len(open_works) != 1:
            assert hint is None
            return
        waiting = sum(
            each.state in ("queued", "claimed") and each.delivery != "next_work"
            for each in self.model.of(open_works[0])
        )
        assert hint == {
            "work_id": open_works[0], "pending_user_items": waiting,
            "queue_revision": self.model.works[open_works[0]].revision,
        }

    def teardown(self) -> None:
        """The log keeps every law, folds included."""
        end_whole(self)


async def _answer(server: Server, command: Command, channel: Channel = "mcp") -> dict[str, Any]:
    """Return an answer or a refusal, in its wire form."""
    try:
        return (await server.handle(command, channel)).to_wire()
    except CodespaceError as error:
        return error.to_wire()


async def _both(servers: list[Server], command: Command) -> list[dict[str, Any]]:
    """Ask all servers at the same time."""
    wires: list[dict[str, Any]] = []

    async def one(server: Server) -> None:
        wires.append(await _answer(server, command))

    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(one, server)
    return wires


TestSteering = Steering.TestCase
TestSteering.settings = settings(max_examples=examples(15), stateful_step_count=25)
