"""Make a printed text the same on every machine, day and line of JAX, and leave everything else as it was printed.

A clock's figure becomes ``<time>``, a path ``<project>``, a release ``<version>``; the rest must hold byte for byte:
verdicts, words, figures of facts, options, the order of lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

CLOCKED = re.compile(
    r"(trace|trace_wait|lower|compile|first_call|host|yardstick|engine)_ns|seconds|began|ended|machine_info"
)
"""Keys whose numbers a real clock found, even in a run whose duels are faked."""
RELEASED = {"flax", "jax", "jaxlib", "jaxgate", "line", "numpy", "optax", "python", "scipy", "system"}
"""Keys whose values are releases."""
MEASURED = {"environments": [], "figures": {}, "moment": "<moment>", "run": "<run>"}
"""Keys whose values are a machine's, and what stands for them; ``tests/report/test_results.py`` looks at them."""
CALLS = "trace_calls"
"""A count of this release of JAX and Python."""
HASHED = {"digest", "inputs", "program", "source", "commit", "options", "executable"}
_TIME = r"\d[\d,.]*(?:e[-+]\d+)? ?(?:ns|µs|us|ms|s|min|h)"
_PROGRESS = re.compile(r"(?m)^[.FEsxX?]+$")
"""Of several workers, whose tests end in any order."""
_SIZE = r"\d[\d.,]* k?B"
_PHASES = "trace_ns|trace_wait_ns|lower_ns|compile_ns|first_call_ns|host_ns"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"\[gw\d\]( linux -- Python \S+ \S+)?", "[worker]"),
        (r"\bgw\d\b", "<worker>"),
        (r"(?m)^worker \S+ crashed", "worker <worker> crashed"),
        (r"\bin \d+\.\d+s(?: \([\d:]+\))?", "in <time>"),
        (r' time="[\d.]+"(?: timestamp="[^"]+" hostname="[^"]+")?', ' time="<time>"'),
        (r"\b0x[0-9a-f]{8,}", "<address>"),
        (r"events\.out\.tfevents\.[\w.-]+", "events.out.tfevents.<time>"),
        (r"(?m)^/.*/importlib/__init__\.py:\d+: in", "<importlib>: in"),
        (rf"(no baseline names any more \(|\d files?, |store +\d+ programs?, ){_SIZE}", r"\1<size>"),
        (rf"(REMOVED  (?:program|baseline)) +{_SIZE}", r"\1 <size>"),  # the column is as wide as the longest of them
        (r"(?m)(% +\|? ?)[\d.]+ s( *\|)?$", r"\1<time>\2"),
        (r"(?m)^On \d{4}-\d\d-\d\d\.", "On <today>."),
        (r"(\b(?:with|from|against|of) `?)[0-9a-f]{10}\b", r"\1<hash>"),
        (r"\b[0-9a-f]{10}((?:\+changes)? of \d{4}-)", r"<hash>\1"),
        (rf"\b({_PHASES}) {_TIME}(?: against {_TIME}(?: = [\d.,]+ ×)?)?", r"\1 <time>"),
        (rf"(`(?:{_PHASES})` \|)[^\n]*", r"\1 <time> |"),
        (r"Captured in [\d.]+ s\.", "Captured in <time>."),
        (r"/tmp/jaxgate-\w+", "<tmp>"),
        (r"\b(jax|jaxlib|numpy|Python|python|jaxgate|flax|optax) \d+\.\d+[\w.]*", r"\1 <version>"),
        (r"(?m)^- \d{4}-\d\d-\d\d (on|trimmed)", r"- <today> \1"),
        (r'(?m)(^  File "<repository>/src/.*\n(?:    .*\n)*)+', '  File "<jaxgate>"\n'),
        (r"(?m)(^<repository>/src/.*:\d+: in \w+\n(?:    .*\n)*)+", "<jaxgate>\n"),
        (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-f]{8}", "<moment>"),
        (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{10})\b", "<hash>"),
        (r"(?m)^((?:cpu|gpu|tpu)-[\w-]+ +)\d+\.\d+ ", r"\1<line> "),
        (r"\(\S+, pid \d+\)", "(<host>, pid <pid>)"),
        (r"[\w.-]+\.xplane\.pb", "<host>.xplane.pb"),
        (r"&host=[^#&\s]+", "&host=<host>"),
        (r"(?m)^  profile   .*\n(?:            .*\n)*", "  profile   <operations>\n"),
        (r"[ \t]+\n", "\n"),
        (r"(?m)^([-=_]{3,}) (.*?) [-=_]{3,}$", r"--- \2 ---"),
        (r"(?m)^[-=_]{20,}$", "---"),
        (r"\s+\[ *\d+%\]", ""),
    )
)


def neutral(text: str, names: Mapping[str, str]) -> str:
    """Replace what differs between machines.

    Args:
        text: What was printed.
        names: Texts of this machine, and what stands for them; longer ones are replaced first.
    """
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return _PROGRESS.sub(lambda found: "".join(sorted(found[0])), text)


def neutral_json(text: str, names: Mapping[str, str]) -> str:
    """The same for JSON: keys and their order stay, and which of a clock's numbers are there."""
    return neutral(json.dumps(_value("", json.loads(text)), indent=1, ensure_ascii=False), names)


def _value(key: str, value: Any) -> Any:
    if key in (*MEASURED, CALLS) and value:
        return MEASURED.get(key, "<calls>")
    if isinstance(value, dict):
        if value.get("kind") == "phase":
            value = value | {"now": "<time>"}
        if value.get("name") == CALLS:
            value = value | dict.fromkeys(("now", "against", "allowed"), "<calls>")
        return {name: _value(name, inner) for name, inner in value.items()}
    if CLOCKED.fullmatch(key) and value is not None:
        return "<time>"
    if key == "explains":
        return sorted(value)  # has no order
    if isinstance(value, list):
        return [_value(key, inner) for inner in value]
    if key in RELEASED and isinstance(value, str):
        return "<version>"
    if key in HASHED and isinstance(value, str) and value:
        return "<hash>"
    return value
