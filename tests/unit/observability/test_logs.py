from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime

import pytest
import structlog

from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.observability.logs import get_logger, set_up

CLOCK = ManualClock(datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC))


def logged(*, verbosity: int = 0, format: str = "json") -> io.StringIO:
    stream = io.StringIO()
    set_up(verbosity=verbosity, format=format, stream=stream, clock=CLOCK)
    return stream


def messages(stream: io.StringIO) -> list[str]:
    return [json.loads(line)["msg"] for line in stream.getvalue().splitlines()]


def test_a_json_line_has_message_time_level_and_fields() -> None:
    stream = logged(verbosity=1)
    get_logger("evictor").bind(profile="main").verbose(1, "Evicted pod", pod="shop/web-1")
    assert json.loads(stream.getvalue()) == {
        "ts": "2026-01-02T03:04:05.000600Z",
        "level": "info",
        "msg": "Evicted pod",
        "logger": "evictor",
        "v": 1,
        "profile": "main",
        "pod": "shop/web-1",
    }


def test_a_text_line_is_for_people() -> None:
    stream = logged(format="text")
    get_logger("cache").warning("Stream is silent", kind="Pod", seconds=21)
    line = stream.getvalue()
    assert line.startswith("2026-01-02T03:04:05.000600Z [warning")
    assert "Stream is silent" in line
    assert line.endswith("kind=Pod seconds=21\n")


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [(0, ["zero", "bad"]), (1, ["zero", "one", "bad"]), (4, ["zero", "one", "four", "bad"])],
)
def test_verbosity_shows_what_is_up_to_it(verbosity: int, shown: list[str]) -> None:
    stream = logged(verbosity=verbosity)
    log = get_logger("x")
    log.info("zero")
    log.verbose(1, "one")
    log.verbose(4, "four")
    log.verbose(5, "five")
    log.error("bad")
    assert messages(stream) == shown


def test_an_error_is_logged_with_its_type() -> None:
    stream = logged()
    get_logger("x").error("Evaluation failed", error=KeyError("n1"))
    assert json.loads(stream.getvalue())["error"] == "KeyError: 'n1'"


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_bug_is_logged_with_its_traceback(format: str) -> None:
    stream = logged(format=format)
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        get_logger("x").exception("Task crashed", task="bus")
    assert "Traceback" in stream.getvalue()
    assert "ZeroDivisionError: division" in stream.getvalue()


def test_what_json_does_not_know_is_written_as_text() -> None:
    stream = logged()
    get_logger("x").info("Odd", thing={1}, path=object)
    assert json.loads(stream.getvalue())["thing"] == "{1}"


def test_libraries_log_to_the_same_place() -> None:
    stream = logged()
    logging.getLogger("aiohttp.server").error("Unhandled %s", "exception")
    logging.getLogger("aiohttp.server").info("Not worth it")
    line = json.loads(stream.getvalue())
    assert (line["logger"], line["level"], line["msg"]) == (
        "aiohttp.server",
        "error",
        "Unhandled exception",
    )


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown logging format 'xml', must be one of text, json"):
        logged(format="xml")


@pytest.mark.parametrize("run", ["once", "again"])
def test_what_a_test_sets_up_ends_with_it(run: str) -> None:
    assert not structlog.is_configured()
    logged()
    assert structlog.is_configured()
