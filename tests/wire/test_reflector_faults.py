"""Every fault that a list or a watch can meet, over real HTTP. What counts in the end is that the
store holds what the server holds, and how many lists that took."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from reactive_descheduler.api.changes import Change
from tests.builders import make_namespace, make_node, make_pod
from tests.wire.server import (
    Answer,
    ApiServer,
    Drop,
    Meanwhile,
    Plain,
    Script,
    Stream,
    Then,
    bookmark_line,
    error_line,
    failure,
    json_of,
    line,
    status_body,
)
from tests.wire.world import FAST, Tokens, connected, eventually, following

pytestmark = pytest.mark.real_time

EXPIRED = "too old resource version: 1 (2)"


def pods(server: ApiServer, *names: str) -> None:
    for name in names:
        server.put(make_pod(name))


async def test_lists_in_pages_then_follows_from_the_version_of_the_list(server: ApiServer) -> None:
    pods(server, *(f"p{n}" for n in range(7)))
    listed = server.version
    async with following(server, page_size=3) as world:
        await world.until_watching()
        server.put(make_pod("p0", labels={"app": "other"}))
        pods(server, "new")
        server.delete("Pod", "default", "p3")
        await eventually(world.in_step)
        assert world.statistics.version == str(server.version)
    assert [each.query.get("continue") for each in server.requests if not each.watching] == [
        None,
        "3",
        "6",
    ]
    assert server.watches_seen("Pod")[0].query["resourceVersion"] == str(listed)
    assert 300 <= int(server.watches_seen("Pod")[0].query["timeoutSeconds"]) <= 600


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(failure(410, "Expired", EXPIRED), id="http-status"),
        pytest.param(Stream([error_line(410, "Expired", EXPIRED)]), id="error-event"),
        pytest.param(Answer(200, status_body(410, "Expired", EXPIRED)), id="plain-body"),
        pytest.param(Answer(200, status_body(410, "Gone", EXPIRED) + b"\n"), id="plain-line"),
    ],
)
async def test_expired_version_lists_anew_and_finds_the_difference(
    server: ApiServer, fault: Plain
) -> None:
    pods(server, "stays", "goes", "changes")

    def change_behind_its_back() -> None:
        server.delete("Pod", "default", "goes", quietly=True)
        pods(server, "changes", "comes")

    server.script_watch("Pod", Meanwhile(change_behind_its_back, fault))
    async with following(server) as world:
        await world.until_watching()
        await eventually(world.in_step)
        assert world.statistics.relists == 1
        assert world.statistics.error == ""
    assert server.lists_seen("Pod") == 2
    last = {
        (change.object.name, change.old is None, change.new is None) for change in world.changes[3:]
    }
    assert last == {
        ("goes", False, True),
        ("changes", False, False),
        ("comes", True, False),
    }, "no phantom change, and the deletion in the gap is noticed"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(failure(500, "InternalError", "etcdserver: leader changed"), id="500"),
        pytest.param(failure(503, "ServiceUnavailable", "shutting down"), id="503"),
        pytest.param(failure(429, "TooManyRequests", "too many", after=0), id="429"),
        pytest.param(Answer(502, b"<html>Bad Gateway</html>"), id="proxy-page"),
        pytest.param(Stream([error_line(500, "InternalError", "storage")]), id="error-event-500"),
        pytest.param(Stream([error_line(504, "Timeout", "timed out")]), id="error-event-504"),
        pytest.param(Drop(), id="dropped-before-answer"),
        pytest.param(Stream([], Then.CUT), id="cut-at-once"),
        pytest.param(Stream([]), id="ended-at-once"),
        pytest.param(Stream([b'{"type":"MODI'], Then.CUT), id="half-line-then-cut"),
        pytest.param(Stream([b'{"type":"MODIFIED","object":{"kind"']), id="half-line-then-end"),
        pytest.param(failure(403, "Forbidden", "pods is forbidden"), id="403"),
        pytest.param(Answer(302, b"", {"Location": "/login"}), id="redirect"),
    ],
)
async def test_fault_on_the_watch_keeps_the_version(server: ApiServer, fault: Script) -> None:
    pods(server, "a")
    server.script_watch("Pod", fault)
    listed = server.version
    async with following(server) as world:
        await eventually(lambda: world.reflector.synced)
        pods(server, "b")
        await world.until_watching()
        await eventually(world.in_step)
        assert world.statistics.relists == 0
        assert world.statistics.error == ""
    assert server.lists_seen("Pod") == 1
    assert [each.query["resourceVersion"] for each in server.watches_seen("Pod")] == [
        str(listed),
        str(listed),
    ]


async def test_cut_in_the_middle_goes_on_after_the_last_event(server: ApiServer) -> None:
    pods(server, "a")
    first = server.put(make_pod("b"))
    del server.objects["Pod"]["default", "b"]  # the list does not have it yet
    server.script_watch("Pod", Stream([line("ADDED", first), b'{"type":'], Then.CUT))
    async with following(server) as world:
        await eventually(lambda: world.reflector.synced)
        server.objects["Pod"]["default", "b"] = first
        await world.until_watching()
        pods(server, "c")
        await eventually(world.in_step)
        assert world.statistics.relists == 0


async def test_server_ending_the_watch_is_no_fault(server: ApiServer) -> None:
    pods(server, "a")
    bookmark = bookmark_line("Pod", server.version + 5)
    server.script_watch("Pod", Stream([bookmark]))
    async with following(server) as world:
        await world.until_watching()
        await eventually(lambda: len(server.watches_seen("Pod")) == 2)
        assert [state.error for state in world.states] == [""]
        assert world.statistics.bookmark_age is not None
    assert server.watches_seen("Pod")[1].query["resourceVersion"] == str(server.version + 5)


async def test_throttled_waits_as_long_as_the_server_asks(server: ApiServer) -> None:
    pods(server, "a")
    server.script_watch("Pod", failure(429, "TooManyRequests", "too many requests", after=1))
    async with following(server) as world:
        await eventually(lambda: len(server.watches_seen("Pod")) == 1)
        began = asyncio.get_running_loop().time()
        await world.until_watching()
        waited = asyncio.get_running_loop().time() - began
    assert 0.95 <= waited < 3


async def test_silent_socket_is_opened_again_without_a_list(server: ApiServer) -> None:
    pods(server, "a")
    server.script_watch("Pod", Stream([bookmark_line("Pod", server.version)], Then.HANG))
    async with following(server, timing=FAST._replace(silence=(0.3, 0.4))) as world:
        await eventually(lambda: world.reflector.synced)
        pods(server, "b")
        began = asyncio.get_running_loop().time()
        await eventually(world.in_step)
        assert asyncio.get_running_loop().time() - began < 2
        assert world.statistics.relists == 0
        assert [state.error for state in world.states] == [""], "silence is no error"


async def test_server_that_never_answers_is_reported(server: ApiServer) -> None:
    server.script_watch("Pod", Drop(after=0.6))
    async with following(server, timing=FAST._replace(silence=(0.2, 0.25))) as world:
        await world.until_watching()
        assert "no answer" in world.states[1].error
        await eventually(lambda: world.statistics.error == "")


async def test_any_byte_is_a_sign_of_life(server: ApiServer) -> None:
    """One object comes in so slowly that the line takes longer than silence may."""
    pod = server.put(make_pod("slow"))
    text = line("ADDED", pod)
    del server.objects["Pod"]["default", "slow"]
    chunks = [text[at : at + 150] for at in range(0, len(text), 150)]
    server.script_watch("Pod", Stream(chunks, Then.HANG, delay=0.15))
    async with following(server, timing=FAST._replace(silence=(0.5, 0.6))) as world:
        await eventually(lambda: world.reflector.synced)
        server.objects["Pod"]["default", "slow"] = pod
        await eventually(world.in_step)
        assert len(chunks) * 0.15 > 0.6
        assert world.statistics.restarts == 0


async def test_line_of_megabytes(server: ApiServer) -> None:
    async with following(server) as world:
        await world.until_watching()
        server.put(make_pod("large", spec={"schedulerName": "x" * 3_000_000}))
        pods(server, "after")
        await eventually(world.in_step)
        assert world.statistics.restarts == 0


async def test_lines_cut_at_any_byte(server: ApiServer) -> None:
    lines = [line("ADDED", server.put(make_pod(f"p{n}"))) for n in range(3)]
    objects = server.objects.pop("Pod")
    text = b"".join(lines)
    server.script_watch(
        "Pod", Stream([text[at : at + 7] for at in range(0, len(text), 7)], Then.HANG)
    )
    async with following(server) as world:
        await eventually(lambda: world.reflector.synced)
        server.objects["Pod"] = objects
        await eventually(world.in_step)


async def test_replay_makes_no_change(server: ApiServer) -> None:
    pod = server.put(make_pod("a"))
    server.script_watch("Pod", Stream([line("ADDED", pod), line("MODIFIED", pod)], Then.CUT))
    async with following(server) as world:
        await world.until_watching()
        assert len(world.changes) == 1
        assert world.in_step()


async def test_known_name_with_a_new_uid_is_another_object(server: ApiServer) -> None:
    pods(server, "a")
    async with following(server) as world:
        await world.until_watching()
        server.put(make_pod("a", uid="second"))
        await eventually(world.in_step)
    sides = [(c.old and c.old.uid, c.new and c.new.uid) for c in world.changes]
    assert sides == [
        (None, "uid-default-a"),
        ("uid-default-a", None),
        (None, "second"),
    ]


async def test_unparsable_object_is_kept_as_opaque(server: ApiServer) -> None:
    async with following(server) as world:
        await world.until_watching()
        server.put(make_pod("odd", spec={"containers": "none at all"}))
        pods(server, "good")
        await eventually(world.in_step)
        assert world.statistics.opaque == 1
        assert [o.opaque != "" for o in world.store.all("Pod")] == [True, False]
        pods(server, "odd")
        await eventually(lambda: world.statistics.opaque == 0)
        assert world.statistics.relists == 0


async def test_unparsable_object_in_a_list_hurts_no_other(server: ApiServer) -> None:
    pods(server, "a", "b")
    server.put(make_pod("odd", spec={"containers": "none at all"}))
    async with following(server) as world:
        await world.until_in_step()
        assert world.statistics.opaque == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"no json\n", id="no-json"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Pod"}}\n', id="no-name"),
        pytest.param(b'{"type":"WHATEVER","object":{}}\n', id="unknown-type"),
    ],
)
async def test_line_about_nobody_is_counted_and_leads_to_a_list(
    server: ApiServer, text: bytes
) -> None:
    pods(server, "a", "b")
    server.script_watch(
        "Pod",
        Meanwhile(
            lambda: server.delete("Pod", "default", "b", quietly=True), Stream([text], Then.HANG)
        ),
    )
    async with following(server) as world:
        await world.until_watching()
        await eventually(world.in_step)
        assert world.statistics.unreadable == 1
    assert server.lists_seen("Pod") == 2


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(failure(500, "InternalError", "no leader"), id="500"),
        pytest.param(failure(429, "TooManyRequests", "too many"), id="429"),
        pytest.param(failure(410, "Expired", "continue token expired"), id="410"),
        pytest.param(Drop(), id="dropped"),
        pytest.param(Stream([b'{"kind":"PodList","items":['], Then.CUT), id="cut"),
        pytest.param(Stream([b'{"kind":"PodList","items":[']), id="half"),
        pytest.param(Answer(200, status_body(410, "Expired", "gone")), id="status-body"),
        pytest.param(Answer(200, b"<html>log in</html>"), id="html"),
    ],
)
@pytest.mark.parametrize("page", [0, 1], ids=["first-page", "second-page"])
async def test_fault_in_a_list_starts_it_over(server: ApiServer, fault: Script, page: int) -> None:
    pods(server, "a", "b", "c")
    # Which page meets the fault is a matter of what is scripted before it.
    if page == 1:
        items = [server.objects["Pod"]["default", "a"]]
        metadata = {"resourceVersion": str(server.version), "continue": "1"}
        server.script_list("Pod", Answer(200, json_of({"metadata": metadata, "items": items})))
    server.script_list("Pod", fault)
    async with following(server, page_size=1) as world:
        await world.until_in_step()
        await world.until_watching()
        assert world.statistics.error == ""
    # A GET that finds its kept connection closed is sent once more, below the reflector.
    assert server.lists_seen("Pod") == (1 if page == 1 and isinstance(fault, Drop) else 2)


async def test_list_that_hangs_is_given_up(server: ApiServer) -> None:
    pods(server, "a")
    server.script_list("Pod", Stream([b"{"], Then.HANG))
    async with following(server, timing=FAST._replace(list_silence=0.3)) as world:
        await world.until_in_step()


async def test_missing_permission_is_named_and_never_synced(server: ApiServer) -> None:
    message = (
        'pods is forbidden: User "me" cannot list resource "pods" in API group "" '
        "at the cluster scope"
    )
    server.script_list("Pod", *[failure(403, "Forbidden", message)] * 100)
    async with following(server) as world:
        await eventually(lambda: server.lists_seen("Pod") >= 2)
        found = world.statistics
        assert not found.synced
        assert "cannot list" in found.error
        assert "verb list on pods" in found.hint
        assert len(world.states) == 1, "the same error is told once"


async def test_refused_token_is_read_anew_once(server: ApiServer) -> None:
    pods(server, "a")
    tokens = Tokens(server.url)
    async with (
        connected(server, tokens) as connection,
        following(server, connection=connection) as world,
    ):
        await world.until_watching()
        server.token = tokens.token = "second"
        server.cut_watches("Pod")
        pods(server, "b")
        await world.until_in_step()
        assert world.statistics.relists == 0
        assert tokens.loads == 2
    assert [each.token for each in server.watches_seen("Pod")] == ["first", "first", "second"]


async def test_refused_token_without_a_new_one_is_reported(server: ApiServer) -> None:
    server.token = "other"
    tokens = Tokens(server.url)
    async with (
        connected(server, tokens) as connection,
        following(server, connection=connection) as world,
    ):
        await eventually(lambda: bool(world.states))
        assert "401" in world.states[0].error
        assert "expired" in world.states[0].hint
        tokens.token = "other"
        await world.until_watching()
        assert world.statistics.error == ""


async def test_version_that_the_server_does_not_know_is_given_up(server: ApiServer) -> None:
    pods(server, "a")
    server.script_watch("Pod", failure(504, "Timeout", "Too large resource version: 9, current: 3"))
    async with following(server) as world:
        await world.until_watching()
    assert server.lists_seen("Pod") == 2


async def test_one_watch_failing_does_not_disturb_another(server: ApiServer) -> None:
    pods(server, "a")
    server.put(make_node("n1"))
    server.put(make_namespace("default"))
    server.script_watch("Node", *[failure(500, "InternalError", "broken")] * 1000)
    async with (
        connected(server) as connection,
        following(server, "Pod", connection=connection) as of_pods,
        following(server, "Node", connection=connection) as of_nodes,
        following(server, "Namespace", connection=connection) as of_namespaces,
    ):
        await of_pods.until_watching()
        await of_namespaces.until_watching()
        await eventually(lambda: of_nodes.statistics.restarts > 3)
        pods(server, "b")
        await eventually(of_pods.in_step)
        for world in (of_pods, of_namespaces):
            assert world.statistics.restarts == 0
            assert world.statistics.error == ""
        assert of_nodes.statistics.error
        server.watches.clear()
        server.put(make_node("n2"))
        await eventually(of_nodes.in_step)


async def test_listener_that_raises_ends_in_a_new_list(server: ApiServer) -> None:
    pods(server, "a")
    raised: list[Change] = []

    def fail_once(change: Change) -> None:
        if change.object.name == "b" and not raised:
            raised.append(change)
            raise RuntimeError("a listener broke")

    async with following(server, on_change=fail_once) as world:
        await world.until_watching()
        pods(server, "b")
        await eventually(lambda: world.statistics.relists == 1)
        await world.until_watching()
        assert world.in_step()
        assert raised


async def test_always_expired_does_not_spin(server: ApiServer) -> None:
    server.script_watch("Pod", *[failure(410, "Expired", EXPIRED)] * 1000)
    async with following(server, timing=FAST._replace(retry_initial=0.2, retry_ceiling=1)):
        await anyio.sleep(1.0)
    assert 2 <= server.lists_seen("Pod") <= 6
