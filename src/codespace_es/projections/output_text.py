"""From raw output to text without breaking characters. Pure."""

CHARACTER_BYTES_MAX = 4


def take_text(content: bytes, bytes_max: int, *, is_end: bool) -> tuple[str, int]:
    """Return text of at most `bytes_max` bytes from the beginning of `content`, and how many bytes it stands for.

    `content` may be longer than `bytes_max`, so that one character too long for it is still given whole. A character
    whose rest isn't there yet is left for the next read; at the end of the output, `is_end`, it is replaced, as are
    bytes that are no UTF-8.
    """
    cut = min(bytes_max, len(content))
    if cut < len(content) or not is_end:
        cut -= _incomplete_bytes(content[:cut])
    if cut == 0 and content:
        cut = _first_character_bytes(content)
        if cut > len(content):
            cut = len(content) if is_end else 0
    return content[:cut].decode("utf-8", "replace"), cut


def skip_broken_start(content: bytes) -> int:
    """Return how many bytes at the beginning belong to a character whose first bytes were dropped; 0 to 3."""
    for count, byte in enumerate(content[: CHARACTER_BYTES_MAX - 1]):
        if byte & 0b1100_0000 != 0b1000_0000:
            return count
    return min(len(content), CHARACTER_BYTES_MAX - 1)


def _incomplete_bytes(content: bytes) -> int:
    """Return how many bytes at the end begin a character that isn't complete; 0 to 3."""
    for back in range(1, min(CHARACTER_BYTES_MAX, len(content) + 1)):
        byte = content[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        return back if _first_character_bytes(content[-back:]) > back else 0
    return 0


def _first_character_bytes(content: bytes) -> int:
    """Return the length that the first byte promises; 1 for one that begins nothing."""
    byte = content[0]
    return 4 if byte & 0xF8 == 0xF0 else 3 if byte & 0xF0 == 0xE0 else 2 if byte & 0xE0 == 0xC0 else 1
