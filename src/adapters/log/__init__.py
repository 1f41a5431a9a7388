"""The event log on SQLite: one file, or memory for an ephemeral store. Nothing else in the code knows which."""
