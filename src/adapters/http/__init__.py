"""Streamable HTTP: one guard over the whole app, the SDK's transport within, and an orderly end."""
