"""One story a file, read from top to bottom: decide, append, act, append."""
