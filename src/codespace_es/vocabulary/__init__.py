"""The nouns that every other floor speaks in: ids, events, errors, limits, file changes. Imports nothing above it."""
