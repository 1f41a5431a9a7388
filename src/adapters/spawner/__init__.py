"""The spawner: a small process that owns every command, so that no command outlives the server that asked for it.

Its own process, on the standard library and ptyprocess alone; a server talks to it over a socket (`adapters.wire`). It
forks reapers (`reaper`), each with a socket to the server of its own. A reaper has one command after another: forks it
and holds it at a gate (`gate`). The end of the gate goes to the server: it alone lets the child go, and if it dies
instead, the child ends and nothing ran.

Messages have a `kind`, and those about a command its `process_id`:

    to the spawner     hold [instance lock] · probe · start [lease, socket]: with a new reaper, which has that socket
                       continue: a reaper · sweep: end all beneath one · kill: a reaper
    from the spawner   hello · sandbox · reaper: it has the command · not_started: there is none · reaper_ended
    to a reaper        start [lease] · continue: its child, if that is stopped on its way to the gate · abandon · end
    from a reaper      gated [report, go, output, input] · not_started · leader_exited · ended

`gated` comes as soon as there is a child: whether it is ready it reports itself (`report`).
`leader_exited` comes only if others of its tree live on. `not_started` or `ended` is the last word on a command;
`reaper_ended` is it for one whose reaper was killed, and then tells how many processes had to be ended.
`hello` names the protocol (`PROTOCOL`), since a server and a runner started elsewhere may be of different releases.
"""

PROTOCOL = 4
"""Of these messages. Goes up with each change of them."""
