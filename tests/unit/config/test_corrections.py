"""The setting of corrections, from a flag or a file."""

from __future__ import annotations

import pytest

from reactive_descheduler.config.corrections import (
    ALL,
    NONE,
    Correction,
    Corrections,
    parse_corrections,
)

STRICT = Correction.STRICT_DOCUMENTS
CORDON = Correction.CORDON_ALONE


@pytest.mark.parametrize(
    ("setting", "corrections"),
    [
        ("all", ALL),
        ("none", NONE),
        (["all"], ALL),
        ([], NONE),
        ("strictDocuments", frozenset({STRICT})),
        ("strictDocuments, cordonAlone", frozenset({STRICT, CORDON})),
        (["cordonAlone", "cordonAlone"], frozenset({CORDON})),
        ([CORDON], frozenset({CORDON})),
    ],
    ids=lambda value: repr(sorted(value) if isinstance(value, frozenset) else value),
)
def test_a_setting_is_read(setting: object, corrections: Corrections) -> None:
    assert parse_corrections(setting) == corrections


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("cordon-alone", "did you mean cordonAlone"),
        ("STRICTDOCUMENTS", "did you mean strictDocuments"),
        (["all", "none"], "unknown correction 'all'"),
        ("", "known are strictDocuments"),
        (["x", {}], "unknown correction 'x'"),
        ([{}], "unknown correction a mapping"),
        ({"all": True}, "not a mapping"),
        (True, "not true"),
        (None, "not None"),
    ],
    ids=repr,
)
def test_a_wrong_setting_is_refused_with_a_hint(setting: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_corrections(setting)


@pytest.mark.parametrize("correction", Correction)
def test_every_correction_tells_both_outcomes(correction: Correction) -> None:
    assert correction.upstream.endswith(".")
    assert correction.ours.endswith(".")
    # Each is shown without the other, so neither may point to it.
    assert not correction.ours.startswith(("It ", "They "))
    assert parse_corrections([str(correction)]) == {correction}
