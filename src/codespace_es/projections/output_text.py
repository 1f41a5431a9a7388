"""From raw output to text without breaking characters. Pure."""


def decode_output(content: bytes, *, is_more_known: bool) -> tuple[str, int]:
    """Return the text of `content` and how many of its bytes it stands for.

    A character whose rest isn't there yet is left for the next read. Where the rest can't come (`is_more_known`: the
    output has ended, or bytes beyond this piece exist and the piece is too small for one character), it is replaced.
    Bytes that are no UTF-8 are replaced.
    """
    cut = len(content) - _incomplete_bytes(content)
    if cut == 0 or is_more_known:
        cut = len(content) if is_more_known else cut
    return content[:cut].decode("utf-8", "replace"), cut


def _incomplete_bytes(content: bytes) -> int:
    """Return how many bytes at the end begin a character that isn't complete; 0 to 3."""
    for back in range(1, min(4, len(content) + 1)):
        byte = content[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needed = 4 if byte & 0xF8 == 0xF0 else 3 if byte & 0xF0 == 0xE0 else 2 if byte & 0xE0 == 0xC0 else 1
        return back if needed > back else 0
    return 0
