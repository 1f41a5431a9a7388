"""Workspaces that aren't configured: whoever may read the log may act where it says that something was done."""

from dataclasses import replace

from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.identifiers import StreamId, WorkspaceKey, workspace_key
from codespace_es.vocabulary.workspace import Workspace


def with_recorded_workspace(settings: Settings, source: LogReader, key: WorkspaceKey) -> Settings:
    """Return the settings with the directory that the log has for `key`, if it is on this machine.

    Without one they stay as they are, and the door says what is missing.
    """
    bound = [each.event for each in source.read_stream(StreamId(key))]
    binding = bound[-1] if bound else None
    if not isinstance(binding, WorkspaceBound) or workspace_key(settings.machine_id, binding.root) != key:
        return settings
    workspace = Workspace(workspace_id=binding.workspace_id, key=key, root=binding.root, profile="workspace-write")
    return replace(settings, workspaces={workspace.workspace_id: workspace})
