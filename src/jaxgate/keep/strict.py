"""Strict reading of stored JSON: a file that is truncated, of another schema, or lacks or adds a key is an error."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaxgate.keep.files import may_be_quoted, read_json, write_atomic

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Content = TypeVar("Content")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


class CorruptBaselineError(Exception):
    """A baseline file that cannot be trusted; ``reason`` says what was expected and what was found."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def adapter_of(kind: type[Content]) -> TypeAdapter[Content]:
    """What reads and writes a type, made once, as that takes long. It raises pydantic's ``ValidationError``."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - every collection of gates imports this module, and few read with it

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def read_strict(path: Path, kind: type[Content], *, schema: int, may_lack: Collection[str] = ()) -> Content:
    """Read one file, or raise CorruptBaselineError, which names the key that cannot be trusted.

    Keys that came later than the ``schema`` (dotted, ``may_lack``) have their defaults where they lack.
    """
    content = _parse_object(path)
    if content.get("schema") != schema:
        found = repr(content.get("schema")) if may_be_quoted(path) else "another, behind a link"
        raise CorruptBaselineError(path, f"expected schema {schema}, found {found}")
    adapter = adapter_of(kind)
    try:
        read = adapter.validate_json(json.dumps(content))
    except RecursionError:
        raise CorruptBaselineError(path, "is nested too deeply") from None
    except ValueError as error:
        raise CorruptBaselineError(path, first_problem(error)) from error
    for lost in _missing_keys(content, adapter.dump_python(read, mode="json")):
        if lost not in may_lack:
            raise CorruptBaselineError(path, f"key `{lost}` is missing")
    return read


_NUMBERS = re.compile(r"\[\n((?:\s+[-+.\deE]+,?\n)+)\s*\]")
"""A list of numbers as ``json`` indents it, which goes on one line; no text in JSON has a line end."""


def write_strict(path: Path, content: object) -> None:
    """Write one file as ``read_strict`` reads it, whole or not at all."""
    plain = adapter_of(type(content)).dump_python(content, mode="json")
    text = json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False)
    text = _NUMBERS.sub(lambda numbers: f"[{', '.join(numbers[1].split())}]".replace(",,", ","), text)
    write_atomic(path, (text + "\n").encode())


def _parse_object(path: Path) -> dict[str, Any]:
    """What a file says, whatever it holds; an error if it is no JSON object, or a key stands twice."""
    try:
        content = read_json(path, pairs=_once)
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptBaselineError(path, f"cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise CorruptBaselineError(path, f"is not JSON (truncated or merged badly?): {error}") from error
    except ValueError as error:
        raise CorruptBaselineError(path, str(error)) from error
    if not isinstance(content, dict):
        raise CorruptBaselineError(path, "expected a JSON object")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: a merge kept both sides, and JSON would silently take the later one."""
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key `{next(name for name in names if names.count(name) > 1)}` stands twice")
    return content


def first_problem(error: Any) -> str:
    """The first thing that pydantic found wrong, by its ``ValidationError``, with the key that has it."""
    problem = error.errors()[0]
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"unknown key `{key}`"
    if problem["type"] == "json_invalid":  # its input is the whole file
        return str(problem["msg"])
    if problem["type"] == "missing":
        return f"key `{key}` is missing"
    return f"key `{key}`: {problem['msg']}, found {reprlib.repr(problem['input'])}"


def _missing_keys(found: Any, whole: Any, prefix: str = "") -> Iterator[str]:
    """The keys that the file lacks and reading filled in by a default."""
    if isinstance(whole, dict) and isinstance(found, dict):
        for key, value in whole.items():
            if key in found:
                yield from _missing_keys(found[key], value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}"
