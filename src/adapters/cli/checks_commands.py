"""What `doctor` finds out about running commands: by what they are truly confined here, found out by trying."""

from collections.abc import Iterator

import anyio

from adapters.cli.check import Check, Verdict
from adapters.runner.own_spawner import OwnSpawner
from adapters.settings.load import Settings
from codespace_es.ports.runner import RunnerLostError

_WHAT_HOLDS = {
    3: "bubblewrap and seccomp: commands write in their workspace alone, and don't see the data directory",
    2: "Landlock and seccomp: commands write in their workspace alone",
    1: "nothing: commands may do all that this user may",
}


def examine_commands(settings: Settings) -> Iterator[Check]:
    """Yield how commands are confined, and which workspaces ask for more than there is."""
    if settings.runner_socket is not None:
        yield Check("commands", "ok", f"They are run by the runner at {settings.runner_socket}; it knows how.")
        return
    try:
        report = anyio.run(OwnSpawner().probe)
    except RunnerLostError as error:
        yield Check("commands", "bad", str(error))
        return
    assert report is not None, "a spawner of our own can be asked"
    level = int(report["level"])
    network = "a restricted network is cut off" if report["is_network_enforced"] else "the network isn't cut off"
    verdict: Verdict = "ok" if level > 1 else "warning"
    yield Check("commands", verdict, f"Sandbox level {level}, {_WHAT_HOLDS[level]}; {network}.")
    for gap in report["gaps"]:
        yield Check("sandbox gap", "ok", f"Known, and not prevented by it: {gap}.")
    for workspace in settings.workspaces.values():
        if workspace.sandbox == "require" and level == 1:
            yield Check(f"workspace {workspace.workspace_id}", "bad", "It requires a sandbox, so no command starts.")
