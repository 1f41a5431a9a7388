"""The event log's database as PostgreSQL: one log that gateways on several hosts share."""
