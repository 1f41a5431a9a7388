"""Custom tools: Python files of the operator's, run in a process apart from the server (`child`).

A server talks to it over one socket (`adapters.wire`). Messages have a `kind`:

    to the child       load · execute · run · stop · forget · answer
    from the child     loaded · refused · done · failed · asks

`load` names a source, and is answered by `loaded` or `refused` before the next one is sent: so whoever is being loaded
while the process dies is known. `execute` (a tool) and `run` (a pending action's callback) begin a call, which ends
with `done` or `failed`; in between, `asks` requests something of the server and `answer` tells what came of it.
Source: decision 32.
"""
