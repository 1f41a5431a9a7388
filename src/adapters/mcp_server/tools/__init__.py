"""One file a tool: what clients are told of it, and one call through the door. No rule of the domain stands here."""
