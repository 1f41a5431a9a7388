"""The rules: aggregates, deciders, policies, ports and command handlers. No I/O, no clock, no adapter."""
