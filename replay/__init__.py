"""Audit: reads the log and tells what it says. Nothing here can write an event, a file or a process."""
