"""The event log's database as SQLite: one file that any number of processes share, or memory."""
