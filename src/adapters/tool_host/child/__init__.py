"""The process in which custom tools are loaded and run: executed, never forked, from the server."""
