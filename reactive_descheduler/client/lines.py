"""Cut a stream of bytes into lines, of whatever length."""

from __future__ import annotations


class LineSplitter:
    """Collects blocks and gives back whole lines.

    The tail is kept as a list of parts and joined once its newline comes, so that a line of
    megabytes, which arrives in hundreds of blocks, is not copied with each of them.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, block: bytes) -> list[bytes]:
        """Return the lines that `block` completes, without their newlines; blank ones are left
        out."""
        last = block.rfind(b"\n")
        if last < 0:
            if block:
                self._parts.append(block)
            return []
        whole = b"".join([*self._parts, block[:last]])
        self._parts = [block[last + 1 :]] if last + 1 < len(block) else []
        return [line for line in whole.split(b"\n") if line]

    @property
    def tail(self) -> bytes:
        """What came after the last newline: half a line, or the body of an answer that is none."""
        return b"".join(self._parts)
