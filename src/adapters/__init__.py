"""The world: MCP, command line, files, patches and the event log. Thin; no rule lives here."""
