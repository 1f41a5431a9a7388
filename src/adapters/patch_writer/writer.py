"""The patch writer: opens the root for an order and lets transaction, recovery or a plain look run on it."""

from adapters.beneath import path_error
from adapters.patch_writer.exchange import Swaps
from adapters.patch_writer.places import Places
from adapters.patch_writer.recovery import settle
from adapters.patch_writer.scene import Scene
from adapters.patch_writer.transaction import Transaction
from codespace_es.ports.fault_points import FaultHook, no_faults
from codespace_es.ports.patch_writer import PatchOrder, SettleImpossibleError, WriteOutcome
from codespace_es.vocabulary.event import ABSENT, Fault
from codespace_es.vocabulary.file_change import FileFinding


class ExchangePatchWriter:
    """Writes plans by exchange-and-verify. Implements `PatchWriter`; stateless, for any thread.

    Args:
        faults: Called before each durable step.
        has_exchange: False behaves as on a file system that can't exchange two names.
    """

    def __init__(self, faults: FaultHook = no_faults, *, has_exchange: bool = True) -> None:
        self._faults = faults
        self._has_exchange = has_exchange

    def write(self, order: PatchOrder) -> WriteOutcome:
        """Apply the plan, or undo it and say why. Never raises for a failure of the system."""
        try:
            places = Places(order.root)
        except OSError as error:
            return WriteOutcome("failed_rolled_back", Fault.of(path_error(error, order.root)), _unseen(order))
        with places:
            return Transaction(self._scene(order, places)).run()

    def settle(self, order: PatchOrder) -> WriteOutcome:
        """Close what a crash left; never applies. Repeating it changes nothing.

        Raises:
            SettleImpossibleError: an undo couldn't be finished, or the disk can't be read; call again later.
        """
        try:
            with Places(order.root) as places:
                return settle(self._scene(order, places))
        except OSError as error:
            raise SettleImpossibleError(f"{order.operation_id}: {error.strerror or error}") from error

    def inspect(self, order: PatchOrder) -> tuple[FileFinding, ...]:
        """Return what is at each planned path now. Raises CodespaceError (as `path_error`) if it can't be read."""
        try:
            with Places(order.root) as places:
                return self._scene(order, places).inspect()
        except OSError as error:
            raise path_error(error, order.root) from error

    def _scene(self, order: PatchOrder, places: Places) -> Scene:
        return Scene(order, places, Swaps(self._faults, has_exchange=self._has_exchange), self._faults)


def _unseen(order: PatchOrder) -> tuple[FileFinding, ...]:
    """Return findings for a root that can't be opened: nothing is there to be seen, and nothing was touched."""
    return tuple(
        FileFinding(path=row.path, found="before" if row.before == ABSENT else "missing") for row in order.plan
    )
