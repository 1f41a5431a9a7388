"""The V4A patch format as pure text work: parse, locate, plan. Knows no file system and writes nothing.

The way of a patch:

1. `envelope` trims the text, takes wrappers off, and cuts it into lines.
2. `parser` makes sections and hunks of them (`patch`). It knows no file.
3. `chunk_locator` finds where a hunk's old lines stand among lines. It knows no path.
4. `matches` places all hunks of one section; `line_ends` keeps every line's own ending.
5. `planner` runs the sections over an `overlay` of the real files, so that each sees what those before it did.
6. `net_change` tells what is left of it: one row a path, images, folders to make, a `diff`.
"""
