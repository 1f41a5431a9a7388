"""The world as the stories see it: every port and the operator's workspaces, in one immutable value."""

from collections.abc import Mapping
from dataclasses import dataclass

from codespace_es.ports.clock_and_ids import Clock, Ids
from codespace_es.ports.custom_tools import CustomTools
from codespace_es.ports.effects import EffectRunner
from codespace_es.ports.fault_points import FaultHook
from codespace_es.ports.files import FilesByRoot
from codespace_es.ports.kept_folds import KeptFolds
from codespace_es.ports.live_processes import LiveProcesses
from codespace_es.ports.locks import InstanceLocks, WorkspaceLeases
from codespace_es.ports.log import EventLog
from codespace_es.ports.own_pushes import OwnPushes
from codespace_es.ports.patch_writer import PatchWriter
from codespace_es.ports.remarks import Remarks
from codespace_es.ports.runner import Runner
from codespace_es.ports.structural_search import StructuralSearch
from codespace_es.ports.tool_host import ToolHost
from codespace_es.ports.turns import Turns
from codespace_es.ports.under_way import UnderWay
from codespace_es.vocabulary.identifiers import InstanceId
from codespace_es.vocabulary.workspace import Workspace


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside the rules, as one server process has it."""

    instance_id: InstanceId
    machine_id: str
    new_file_mode: int
    """Permission bits of a new file: 0666 less the process' umask, never executable."""
    child_environment: Mapping[str, str]
    """What every command gets, beside its workspace's own variables; nothing else of ours ever reaches it."""
    private_paths: tuple[str, ...]
    """Directories that commands must not see: the data directory, the locks."""
    input_key: bytes
    """Key of this data directory, under which input is recorded."""
    workspaces: Mapping[str, Workspace]
    """By workspace_id, in the operator's order."""
    log: EventLog
    files: FilesByRoot
    structural: StructuralSearch
    patch_writer: PatchWriter
    instance_locks: InstanceLocks
    leases: WorkspaceLeases
    runner: Runner
    tool_host: ToolHost
    custom_tools: CustomTools
    live: LiveProcesses
    under_way: UnderWay
    turns: Turns
    remarks: Remarks
    kept: KeptFolds
    own_pushes: OwnPushes
    is_shared: bool
    """Several clients speak to this server (HTTP), so what it has done before tells nothing of whom a call is from."""
    effects: EffectRunner
    clock: Clock
    ids: Ids
    faults: FaultHook
