"""The command line `codespace-es`: one file a command group, each imported only when it is called."""
