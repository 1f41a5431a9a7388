"""Structural search: `searching` is the door; it reads files, and a crew of worker processes parses and matches them.

In the server, `scope` picks files and `crew` keeps workers (`worker_link` is one of them) and feeds them. In a worker,
`worker` is the program, `examining` answers, `matching` asks the engine and `rewriting` makes new text. Both know
`languages` and `patterns`.

What is said over the wire: a job holds until the next one; everything else is answered by one message, in order.

    to a worker     job {patterns, replacements?, selector, keep, text_characters_max} · check {language} ·
                    file {language, content, limit?}
    from a worker   hello · reading {fault} or {readings} · skipped {reason} ·
                    matched {count, matches} or {count, changes, overlap?, kept?, content?, broken_line?}

`content` is base64; `keep` is how many matches of one file are told at most.
"""
