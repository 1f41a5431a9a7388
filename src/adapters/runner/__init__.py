"""The runner: the server's side of the spawner, which implements `codespace_es.ports.runner`."""
