"""The spawner: a small process that owns every command, so that no command outlives the server that asked for it.

Its own process, on the standard library and ptyprocess alone; a server talks to it over one socket (`wire`). It forks a
reaper for each command (`reaper`), which forks the command itself and holds it at a gate (`gate`).
"""
