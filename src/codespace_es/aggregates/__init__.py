"""One file an aggregate, each in the same order: events, state, evolve, decide. They don't know each other."""
