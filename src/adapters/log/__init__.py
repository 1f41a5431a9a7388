"""The event log: written once over a database (`database`), which is SQLite or PostgreSQL."""
