"""The operator's configuration: flags, environment and file made into one checked value. Nothing here opens a log."""
