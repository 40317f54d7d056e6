"""Cutting bytes into lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.client.lines import LineSplitter


@pytest.mark.parametrize(
    ("blocks", "lines", "tail"),
    [
        pytest.param([b"a\nb\n"], [[b"a", b"b"]], b"", id="whole"),
        pytest.param([b"a\nb"], [[b"a"]], b"b", id="half"),
        pytest.param([b"a", b"b", b"c\nd"], [[], [], [b"abc"]], b"d", id="in-parts"),
        pytest.param([b"a", b"\n"], [[], [b"a"]], b"", id="newline-alone"),
        pytest.param([b"\n\na\n\n"], [[b"a"]], b"", id="blank-lines"),
        pytest.param([b""], [[]], b"", id="nothing"),
        pytest.param([b"a", b"", b"\nb\n"], [[], [], [b"a", b"b"]], b"", id="empty-block"),
    ],
)
def test_lines(blocks: list[bytes], lines: list[list[bytes]], tail: bytes) -> None:
    splitter = LineSplitter()
    assert [splitter.feed(block) for block in blocks] == lines
    assert splitter.tail == tail


@given(st.binary(), st.lists(st.integers(min_value=1, max_value=9)))
def test_how_it_is_cut_into_blocks_does_not_matter(text: bytes, sizes: list[int]) -> None:
    splitter, lines, at = LineSplitter(), [], 0
    for size in sizes:
        lines += splitter.feed(text[at : at + size])
        at += size
    lines += splitter.feed(text[at:])
    *whole, tail = text.split(b"\n")
    assert lines == [each for each in whole if each]
    assert splitter.tail == tail
