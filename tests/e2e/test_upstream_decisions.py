"""Full passes against those of upstream itself, on random cases made of the corpus' parts.

It needs no control plane: upstream runs on fake clients (tests/controlplane/peer/onepass).
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tests.conformance import run
from tests.conformance.mutations import Mutations
from tests.conformance.upstream import difference, playing
from tests.controlplane.upstream import ONE_PASS, needs

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, needs(ONE_PASS)]

_CORPUS = sorted(Path(run.__file__).parent.glob("*.jsonl"))


@pytest.mark.timeout(180)
def test_random_cases_are_decided_as_upstream_decides_them() -> None:
    check(cases=500, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_random_cases_are_decided_as_upstream_decides_them_for_long() -> None:
    check(cases=10_000, seed=2)


def check(*, cases: int, seed: int) -> None:
    """Play so many cases; the seed may be anything, and a failure shows its case."""
    corpus = [case for file in _CORPUS for case in run.cases(file)]
    with playing() as upstream:
        for case in islice(Mutations(corpus, Random(seed)), cases):
            assert difference(case, upstream) is None, json.dumps(case)
