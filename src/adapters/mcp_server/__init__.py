"""MCP over stdio: transport, tools, resources. It translates; no rule of the product lives here."""
