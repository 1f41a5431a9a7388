"""Audit: reads the log and can't act on the world. Timeline, one thing's story, verification."""
