"""Locks of the operating system: an instance's own, and a workspace's lease. All are flock on files never unlinked."""
