"""Structured logs on standard error: constant messages, variable data in key-values.

Levels are the field's own: errors, warnings, and information of verbosity 0 and up, of which
`-v N` shows those up to N (1 evictions, 3 steps, 4 why a Pod stays, 5 details).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping
from typing import Protocol, TextIO, cast

import orjson
import structlog

from reactive_descheduler.kit.clock import Clock

FORMATS = ("text", "json")
"""Values of `--logging-format`."""

EventDict = MutableMapping[str, object]


class _Sink(Protocol):
    """What is used of a logger of the library, whose own signatures are untyped."""

    def debug(self, event: str, **fields: object) -> object: ...
    def info(self, event: str, **fields: object) -> object: ...
    def warning(self, event: str, **fields: object) -> object: ...
    def error(self, event: str, **fields: object) -> object: ...


class Logger:
    """One part's logger. Messages are constant; a value goes into a field."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields
        # A proxy: it looks up the configuration at each line, so it may be made before `set_up`.
        self._sink = cast(_Sink, structlog.get_logger())

    def verbose(self, level: int, message: str, /, **fields: object) -> None:
        """Log at verbosity `level`, 1 and up: shown if `-v` is at least that."""
        self._sink.debug(message, **{**self._fields, "v": level, **fields})

    def info(self, message: str, /, **fields: object) -> None:
        """Log what is always shown."""
        self._sink.info(message, **{**self._fields, "v": 0, **fields})

    def warning(self, message: str, /, **fields: object) -> None:
        self._sink.warning(message, **{**self._fields, **fields})

    def error(self, message: str, /, **fields: object) -> None:
        """Log a failure. An exception given as `error` is logged with its type."""
        self._sink.error(message, **{**self._fields, **fields})

    def exception(self, message: str, /, **fields: object) -> None:
        """Log the exception being handled, with its traceback: a bug of ours, not an incident."""
        self._sink.error(message, **{**self._fields, "exc_info": True, **fields})

    def bind(self, **fields: object) -> Logger:
        """Return a logger that adds these fields to each line."""
        return Logger({**self._fields, **fields})


def get_logger(name: str) -> Logger:
    """Return the logger of a part; `name` shows as `logger`. May be called before `set_up`."""
    return Logger({"logger": name})


def set_up(*, verbosity: int = 0, format: str = "text", stream: TextIO, clock: Clock) -> None:
    """Configure logging of the whole process, that of libraries included (warnings and up).

    Raise ValueError for an unknown format.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown logging format {format!r}, must be one of {', '.join(FORMATS)}")
    structlog.configure(
        processors=cast(
            "list[structlog.typing.Processor]",
            [
                _up_to(verbosity),
                _add_level,
                _stamp(clock),
                _name_errors,
                *(_json_renderers() if format == "json" else _text_renderers(stream)),
            ],
        ),
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbosity > 0 else logging.INFO
        ),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,  # tests capture, and the command line sets up late
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge(logging.WARNING)]
    root.setLevel(logging.WARNING)


class _Bridge(logging.Handler):
    """Sends what libraries log through the standard library to the same place."""

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger(record.name)
        say = log.error if record.levelno >= logging.ERROR else log.warning
        fields: dict[str, object] = {"exc_info": record.exc_info} if record.exc_info else {}
        say(record.getMessage(), **fields)


def _up_to(verbosity: int) -> Callable[[object, str, EventDict], EventDict]:
    def drop_finer(_: object, __: str, event: EventDict) -> EventDict:
        level = event.get("v")
        if isinstance(level, int) and level > verbosity:
            raise structlog.DropEvent
        return event

    return drop_finer


def _add_level(_: object, method: str, event: EventDict) -> EventDict:
    """Whatever its verbosity, information is information."""
    event["level"] = "info" if "v" in event else method
    return event


def _stamp(clock: Clock) -> Callable[[object, str, EventDict], EventDict]:
    def add_time(_: object, __: str, event: EventDict) -> EventDict:
        event["ts"] = clock.now()
        return event

    return add_time


def _name_errors(_: object, __: str, event: EventDict) -> EventDict:
    """An exception's text alone often says little (`KeyError: 'x'` is just `'x'`)."""
    if isinstance(error := event.get("error"), BaseException):
        event["error"] = f"{type(error).__name__}: {error}"
    return event


def _text_renderers(stream: TextIO) -> list[object]:
    return [
        _readable_time,
        structlog.dev.ConsoleRenderer(
            colors=stream.isatty(),
            timestamp_key="ts",
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


def _json_renderers() -> list[object]:
    return [structlog.processors.format_exc_info, _to_json]


def _readable_time(_: object, __: str, event: EventDict) -> EventDict:
    event["ts"] = f"{event['ts']:%Y-%m-%dT%H:%M:%S.%f}Z"
    return event


def _to_json(_: object, __: str, event: EventDict) -> str:
    """Time, level and message first, for people who read it raw all the same."""
    message, level, stamp = event.pop("event"), event.pop("level"), event.pop("ts")
    line = {"ts": stamp, "level": level, "msg": message, **event}
    return orjson.dumps(
        line, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
    ).decode()
