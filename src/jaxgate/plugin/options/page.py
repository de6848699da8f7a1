"""The tables of options and of kinds of run as a page: ``python -m jaxgate.plugin.options.page > docs/options.md``."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable

from jaxgate.plugin.options.kinds import KINDS
from jaxgate.plugin.options.option import Option
from jaxgate.plugin.options.table import OPTIONS, STRICT
from jaxgate.settings import RunKind

_HEAD = """# Options

Made by `python -m jaxgate.plugin.options.page > docs/options.md`; a test holds it against the code. A value on the
command line goes before one in an environment variable, that before an ini key of pytest, that before the default.

| option | environment | ini | default | what |
|---|---|---|---|---|
"""
_KINDS = """
## Kinds of run

A run is of one kind; no two go together. What may stand beside it:

| kind | `--benchmark-disable` | workers (`-n`) | ranks (`--perf-distributed`) |
|---|---|---|---|
"""
_YES_NO = {False: "yes", True: "no"}
_WHAT = {RunKind.AGAINST: " REVISION", RunKind.AGAINST_ENV: " ENVIRONMENT"}


def options_page() -> str:
    """Render all options, then what each kind of run allows beside it, as Markdown."""
    kinds = [
        (
            f"`{kind.flag}{_WHAT.get(kind, '')}`" if kind.flag else "judging",
            *(_YES_NO[bool(no)] for no in (one.samples, one.workers, one.ranks)),
        )
        for kind, one in KINDS.items()
    ]
    return _HEAD + _rows(map(_row, OPTIONS)) + _KINDS + _rows(kinds)


def options_text() -> str:
    """All options for a terminal: names, then what each is for."""
    lines = []
    for option in OPTIONS:
        names = _flag(option) or option.variable
        lines += [
            f"  {names}",
            textwrap.fill(option.long_help, 80, initial_indent="      ", subsequent_indent="      "),
        ]
    return "\n".join(lines) + "\n"


def _flag(option: Option) -> str:
    """How it is typed; empty where it has no flag."""
    form = option.values.form
    value = form.get("metavar") or "|".join(form.get("choices", ()))
    return f"{option.flag}[={value}]" if "nargs" in form else f"{option.flag} {value}".strip() if option.flag else ""


def _row(option: Option) -> tuple[str, ...]:
    flags = [_flag(option), *([option.flag.replace("--", "--no-", 1)] if option is STRICT else [])]
    places = (", ".join(f"`{name}`" for name in names if name) for names in (flags, [option.variable], [option.ini]))
    return *places, option.default_words, option.help.replace(" {default}", "")


def _rows(rows: Iterable[Iterable[str]]) -> str:
    lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "".join(f"| {line} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(options_page())
