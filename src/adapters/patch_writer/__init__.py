"""Multi-file patches on a real directory: all of a plan or none of it, decided by the hashes on disk alone."""
