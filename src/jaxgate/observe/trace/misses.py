"""Why JAX traced again, as it explains each miss of its tracing cache in its log (``jax.explain_cache_misses``)."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import jax

from jaxgate.observe.arguments.signature import ArgumentKey, join
from jaxgate.observe.arguments.static import static_change
from jaxgate.observe.compat import CACHE_LOGGERS, TRACING_LOGGER, traced_call
from jaxgate.observe.source_lines import calling_line, short_path

RECORDING = "jax_debug_key_reuse"
"""The setting under which ``recorded_calls`` has calls arrive."""
Kind = Literal["new", "arguments", "static", "config", "other"]

_HEADER = "TRACING CACHE MISS"
_CACHE_TEXTS = ("PERSISTENT COMPILATION CACHE MISS", "Not writing persistent cache entry", "Writing ")
"""Other texts that the same switch makes JAX print, where a persistent cache is on."""

_FUNCTION = re.compile(r"^(?:for )?(?P<name>.+?)(?: id=\d+)?(?: defined at (?P<file>.+?)(?::(?P<line>\d+))?)?$")
_TYPES = re.compile(r"^\* at (.+?), now (.+) and before (.+)$")
_TREES = re.compile(r"^\* at input path (.*?), now (.+) and before (.+?), so (.+)$")
_SETTING = re.compile(r"^\* (.+?) differs: now (.+) and before (.+)$")
_STATIC = re.compile(r"\bStatic\(val=(.*)\)$")
_CLASS = re.compile(r"<class '(?:[\w.]+\.)?(\w+)'>")
_NAMELESS = {"<unknown>": "<unnamed function>"}
"""A callable object, as JAX explains it and as its events name it."""
_DTYPES = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat", "s": "int"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One entry that JAX's tracing cache did not hold."""

    function: str  # name of the function as its events give it, `<unnamed function>` for callable objects
    defined: str  # where it stands, `file:line`; empty if unknown
    where: str  # the project's line that called it, `file:line`; empty if no frame is the project's
    kind: Kind  # what differed from the nearest entry; `new` if this function object was never traced
    cause: str  # the difference in words; empty for `new`
    call: tuple[ArgumentKey, ...] = ()  # its arguments; empty if they cannot be known


@dataclass(frozen=True, slots=True, eq=False)
class _Listener:
    """A listener to the misses of a thread; ``wanted`` if the explanations were on before anybody listened."""

    thread: int
    report: Callable[[Miss], None]
    wanted: bool


_listeners: list[_Listener] = []
_levels: dict[str, int] = {}
_lock = threading.Lock()


@contextmanager
def listen_to_misses(report: Callable[[Miss], None]) -> Iterator[None]:
    """Report every tracing-cache miss of this thread until the block ends; nothing of it is printed.

    Whoever had switched the explanations on already still gets them. Blocks may be nested. ``report`` is called within
    the miss, before the function is traced.
    """
    thread = threading.get_ident()
    outer = [listener.wanted for listener in _listeners if listener.thread == thread]
    listener = _Listener(thread, report, outer[0] if outer else bool(jax.config.jax_explain_cache_misses))
    with _lock:
        if not _listeners:
            _install()
        _listeners.append(listener)
    try:
        with jax.explain_cache_misses(True):
            yield
    finally:
        with _lock:
            _listeners.remove(listener)
            if not _listeners:
                _remove()


def _install() -> None:
    """Filter the loggers; the one that explains must speak, whatever the project's logging is set to."""
    for name in (TRACING_LOGGER, *CACHE_LOGGERS):
        logging.getLogger(name).addFilter(_catch)
    logger = logging.getLogger(TRACING_LOGGER)
    _levels.update(logger=logger.level, disabled=logger.disabled, manager=logger.manager.disable)
    logger.disabled = False  # logging.config disables what it does not know
    if logger.manager.disable >= logging.WARNING:
        logging.disable(logging.NOTSET)
    if not logger.isEnabledFor(logging.WARNING):
        logger.setLevel(logging.WARNING)


def _remove() -> None:
    for name in (TRACING_LOGGER, *CACHE_LOGGERS):
        logging.getLogger(name).removeFilter(_catch)
    logger = logging.getLogger(TRACING_LOGGER)
    logger.disabled = bool(_levels["disabled"])
    logger.setLevel(_levels["logger"])
    if logger.manager.disable != _levels["manager"]:
        logging.disable(_levels["manager"])


def _catch(entry: logging.LogRecord) -> bool:
    """Report a miss to this thread's listeners; keep everything from being printed that only they asked for."""
    listeners = [listener for listener in _listeners if listener.thread == threading.get_ident()]
    text = entry.getMessage()
    if not listeners or not text.startswith((_HEADER, *_CACHE_TEXTS)):
        return True
    if text.startswith(_HEADER):
        miss = read_miss(text, calling_line())
        miss = replace(miss, call=traced_call(miss.function))
        for listener in listeners:
            listener.report(miss)
    return listeners[0].wanted


def read_miss(text: str, where: str) -> Miss:
    """Read one explanation as JAX logs it, of a call at a line of the project."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    new = bool(lines) and lines[0].startswith("never seen function")
    named, *rest = lines[1:] if new and len(lines) > 1 else lines or [""]
    found = _FUNCTION.match(named)
    name, file, number = found.group("name", "file", "line") if found else ("?", None, None)
    kind: Kind
    kind, cause = ("new", "") if new else _cause(rest)
    return Miss(
        function=_NAMELESS.get(name, name),
        defined="" if not file else f"{short_path(file)}:{number}" if number else short_path(file),
        where=where,
        kind=kind,
        cause=cause,
    )


def _cause(lines: list[str]) -> tuple[Kind, str]:
    """What differs from the nearest entry, in our words; JAX's first sentence where it is none we know.

    An entry that was made while calls were recorded says nothing: the setting by which that is done is ours.
    """
    ours = f"* {RECORDING} differs"
    lines = [line for line in lines if not line.startswith((ours, "all previously seen cache keys"))]
    if not lines:
        return "other", ""
    if types := [match for line in lines if (match := _TYPES.match(line)) and "input path" not in match[1]]:
        return "arguments", join([f"{match[1]}: {_aval(match[3])} → {_aval(match[2])}" for match in types])
    if settings := [match for line in lines if (match := _SETTING.match(line))]:
        return "config", join([f"{match[1]}: {match[3]} → {match[2]}" for match in settings])
    trees = [match for line in lines if (match := _TREES.match(line))]
    statics = [
        f"{_path(match[1])}: {static_change(old[1], new[1])}"
        for match in trees
        if (new := _STATIC.search(match[2])) and (old := _STATIC.search(match[3]))
    ]
    if statics:
        return "static", join(statics)
    if trees:
        return "arguments", join([f"{_path(match[1])}: {_tree_change(match)}" for match in trees])
    if lines[0] == "cache miss explanation unavailable":  # trees and types are equal, so it is what they leave out
        return "static", "a static argument changed (JAX does not say which)"
    return "other", re.split(r"(?<=[.;]) ", lines[0])[0].rstrip(".:;")


def _tree_change(difference: re.Match[str]) -> str:
    new, old = (_CLASS.fullmatch(text) for text in difference.group(2, 3))
    if new and old and new[1] != old[1]:
        return f"{old[1]} → {new[1]}"
    return f"the tree changed: {difference[4]}"


def _aval(text: str) -> str:
    """``f32[3]({}){weak_type=True}…`` as ``float32[3] (weak type)``."""
    weak = "{weak_type=True}" in text
    text = re.sub(r"\(\{\}\)|\{weak_type=\w+\}|https?://\S+", "", text)
    text = re.sub(r"^([a-z]{1,2})(\d+\w*)\[", lambda found: f"{_DTYPES.get(found[1], found[1])}{found[2]}[", text)
    return f"{text} (weak type)" if weak else text


def _path(path: str) -> str:
    """A path into ``(args, kwargs)`` as the caller wrote it."""
    if match := re.match(r"^\[1\]\['(\w+)'\](.*)$", path):
        return match[1] + match[2]
    if match := re.match(r"^\[0\]\[(\d+)\](.*)$", path):
        return f"args[{match[1]}]{match[2]}"
    return {"[0]": "the positional arguments", "[1]": "the keyword arguments"}.get(path, "the arguments")
