"""What is wrong with a configuration, in one line for the operator."""


class StartupError(Exception):
    """The server can't start as it is configured. The message is one line that says what to change; exit code 2."""
