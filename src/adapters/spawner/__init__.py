"""The spawner: a small process that owns every command, so that no command outlives the server that asked for it.

Its own process, on the standard library and ptyprocess alone; a server talks to it over one socket (`adapters.wire`).
It forks a reaper for each command (`reaper`), which forks the command itself and holds it at a gate (`gate`). The end
of the gate goes to the server: it alone lets the child go, and if it dies instead, the child ends and nothing ran.

Messages have a `kind` and, but for the first ones, the `process_id` that they are about:

    to the spawner     hold [instance lock] · probe · start [lease] · abandon · resize · end
    from the spawner   hello · sandbox · gated [go, output, input] · not_started · resized · leader_exited · ended

`leader_exited` comes only if others of its tree live on; `not_started` or `ended` is the last word on a command.
`hello` names the protocol (`PROTOCOL`), since a server and a runner started elsewhere may be of different releases.
The same messages go on between the spawner and the reaper of a command.
"""

PROTOCOL = 2
"""Of these messages. Goes up with each change of them."""
