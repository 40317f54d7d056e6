"""The memory of where Pods fit gives what a search would give."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.scheduling.fit import misfit
from reactive_descheduler.framework.fitting import Fitting
from tests.builders import cluster, make_node, make_pod, owner, view

NODES = ("n0", "n1", "n2", "n3")
PODS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(["100m", "900m"])), min_size=1, max_size=8
)


@given(
    placed=PODS,
    sizes=st.lists(st.sampled_from(["500m", "1", "2"]), min_size=4, max_size=4),
    asked=st.lists(st.integers(0, 7), min_size=1, max_size=20),
)
def test_memory_changes_no_answer(
    placed: list[tuple[str, str]], sizes: list[str], asked: list[int]
) -> None:
    lister = cluster(
        *(
            make_node(name, allocatable={"cpu": size, "pods": "3"})
            for name, size in zip(NODES, sizes, strict=True)
        ),
        *(
            make_pod(f"p{place}", node=node, requests={"cpu": cpu})
            for place, (node, cpu) in enumerate(placed)
        ),
    )
    fitting = Fitting()
    for place in asked:
        pod = lister.pod_named("default", f"p{place % len(placed)}")
        assert pod is not None
        fits = {
            node.name
            for node in lister.nodes()
            if node.name != pod.node_name and misfit(pod, node, lister) is None
        }

        found = fitting.elsewhere(pod, lister.nodes(), lister)

        assert (found.name in fits) if found else not fits


def test_one_search_answers_for_every_workload_that_asks_for_the_same() -> None:
    lister = cluster(
        make_node("n1"),
        *(
            make_pod(name, node="n1", labels={"app": name}, owners=[owner(name)], images=[name])
            for name in ("a", "b", "c")
        ),
    )
    searches = 0

    def nodes() -> Iterator[Node]:
        nonlocal searches
        searches += 1
        yield from lister.nodes()

    fitting = Fitting()
    for pod in lister.pods():
        assert fitting.elsewhere(pod, nodes(), lister) is None

    assert searches == 1


def test_memory_ends_with_the_state_that_it_is_of() -> None:
    lister = cluster(make_pod("p", node="n1"), make_node("n1"))
    pod = lister.pod_named("default", "p")
    assert pod is not None
    fitting = Fitting()
    assert fitting.elsewhere(pod, lister.nodes(), lister) is None

    lister._store.put(view(make_node("n2")))

    found = fitting.elsewhere(pod, lister.nodes(), lister)
    assert found is not None
    assert found.name == "n2"
