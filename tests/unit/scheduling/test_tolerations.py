"""Which taints a Pod tolerates."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.scheduling.tolerations import (
    HARD_EFFECTS,
    taint_text,
    tolerates,
    untolerated,
)
from reactive_descheduler.api.terms import Taint, Toleration

GPU = Taint("gpu", "yes", "NoSchedule")


def number(value: str) -> Taint:
    return Taint("level", value, "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes"), GPU, True, id="equal"),
        pytest.param(Toleration("gpu", "", "yes"), GPU, True, id="no-operator-is-equal"),
        pytest.param(Toleration("gpu", None, "yes", None), GPU, True, id="nulls"),
        pytest.param(Toleration("gpu", "Equal", "no"), GPU, False, id="other-value"),
        pytest.param(Toleration("disk", "Exists"), GPU, False, id="other-key"),
        pytest.param(Toleration("gpu", "Exists", "no"), GPU, True, id="exists-ignores-value"),
        pytest.param(Toleration("", "Exists"), GPU, True, id="any-key"),
        pytest.param(Toleration("", "Equal", "yes"), GPU, True, id="any-key-of-that-value"),
        pytest.param(Toleration("gpu", "Exists", "", "NoExecute"), GPU, False, id="other-effect"),
        pytest.param(Toleration("gpu", "Exists", "", "NoSchedule"), GPU, True, id="effect"),
        pytest.param(Toleration("gpu", "Like", "yes"), GPU, False, id="unknown-operator"),
        pytest.param(Toleration("gpu", "Equal"), Taint("gpu", None, "NoSchedule"), True, id="bare"),
        pytest.param(Toleration("level", "Gt", "5"), number("7"), True, id="greater"),
        pytest.param(Toleration("level", "Gt", "7"), number("7"), False, id="not-greater"),
        pytest.param(Toleration("level", "Gt", "05"), number("7"), False, id="leading-zero"),
        pytest.param(Toleration("level", "Gt", "+5"), number("7"), False, id="plus"),
        pytest.param(Toleration("level", "Lt", "5"), number("-7"), True, id="less-than-negative"),
        pytest.param(Toleration("level", "Lt", "5"), number("-0"), False, id="minus-zero"),
        pytest.param(Toleration("level", "Lt", "5"), number("4.5"), False, id="fraction"),
        pytest.param(Toleration("level", "Lt", "5"), number(""), False, id="no-number"),
        pytest.param(
            Toleration("level", "Gt", "1"), number("9223372036854775808"), False, id="too-large"
        ),
        pytest.param(
            Toleration("level", "Gt", "1"), number("9223372036854775807"), True, id="largest"
        ),
    ],
)
def test_toleration_covers_taint(toleration: Toleration, taint: Taint, expected: bool) -> None:
    assert tolerates(toleration, taint) is expected


def test_first_taint_of_the_effects_that_nothing_covers_is_told() -> None:
    soft = Taint("soft", "", "PreferNoSchedule")
    hard = Taint("hard", "", "NoExecute")

    assert untolerated((), (soft, GPU, hard), HARD_EFFECTS) == GPU
    assert untolerated((Toleration("gpu", "Exists"),), (soft, GPU, hard), HARD_EFFECTS) == hard
    assert untolerated((), (soft,), HARD_EFFECTS) is None


def test_taint_reads_as_kubectl_writes_it() -> None:
    assert taint_text(GPU) == "gpu=yes:NoSchedule"
    assert taint_text(Taint("gpu", "", "NoExecute")) == "gpu:NoExecute"
