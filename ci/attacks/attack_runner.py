"""Carry out attacks one after another, and tell how each ended."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from attack import Attack, CannotRunError, Outcome, Seen
from scratch_project import Workshop

WIDTH = 140


def main(arguments: Sequence[str], attacks: Sequence[Attack]) -> int:
    """Carry out the chosen attacks; gives 0 where each is held, 1 where one is not or could not be run, 2 for none."""
    parser = argparse.ArgumentParser(prog="ci/attacks", description="Changes that a verdict must not miss.")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the environment whose jaxgate is attacked"
    )
    parser.add_argument(
        "-k", metavar="WORD", default="", help="only the attack of this number, or with this in its title"
    )
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="leave the projects in this new folder")
    options = parser.parse_args(arguments)
    chosen = [attack for attack in attacks if attack.chosen(options.k)]
    if not chosen:
        print(f"no attack has {options.k!r} in its title or for its number", file=sys.stderr)
        return 2
    folder = options.keep or Path(tempfile.mkdtemp(prefix="attacks-"))
    try:
        ended = _carry_out(chosen, Workshop(folder.resolve(), options.python))
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(table(chosen, ended)))
    return int(any(seen.outcome is not Outcome.HELD for seen in ended))


def _carry_out(attacks: Sequence[Attack], workshop: Workshop) -> list[Seen]:
    """Each attack in turn, as their times are measured; with a line for each that ended."""
    ended = []
    for place, attack in enumerate(attacks, 1):
        begin = time.monotonic()
        ended.append(seen := _seen(attack, workshop))
        took = f"{time.monotonic() - begin:.0f} s"
        print(f"{place}/{len(attacks)}  {attack.number}  {attack.title}: {seen.outcome} ({took})", flush=True)
    return ended


def _seen(attack: Attack, workshop: Workshop) -> Seen:
    try:
        return attack.run(workshop)
    except CannotRunError as error:
        return Seen(Outcome.NOT_RUN, str(error))
    except Exception as error:  # noqa: BLE001 - whatever breaks, nothing is known of the verdict
        return Seen(Outcome.NOT_RUN, f"{type(error).__name__}: {error}")


def table(attacks: Sequence[Attack], ended: Sequence[Seen]) -> list[str]:
    """A Markdown table, and the counts."""
    rows = ["", "| number | attack | outcome | seen |", "|---|---|---|---|"]
    for attack, seen in zip(attacks, ended, strict=True):
        what = " ".join(seen.what.split()).replace("|", "\\|")
        short = what if len(what) <= WIDTH else f"{what[: WIDTH - 1]}…"
        rows.append(f"| {attack.number} | {attack.title} | {seen.outcome} | {short} |")
    counts = [f"{sum(seen.outcome is outcome for seen in ended)} {outcome}" for outcome in Outcome]
    return [*rows, "", f"{len(ended)} attacks: {', '.join(counts)}"]
