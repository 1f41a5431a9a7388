"""A workspace's files, reading only: windows, lines, images, finding and searching, all opened beneath the root.

`workspace_files` is the door; `paths` folds text, `opening` gives checked descriptors, `reading` reads; `walking`
lists the tree for `finding` and `searching`, by the rules of `globs` and `ignoring`.
"""
