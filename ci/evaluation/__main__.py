"""Measure how good the gate is, beside what people would use instead, and write a page with the figures.

Usage: python -m ci.evaluation [PART ...] [--quick] [--fresh] [--page FILE]   (``make evaluate``; about 50 minutes on 2 cores)

Parts: planted, peers, elsewhere, unchanged, power, attacks, broken; all of them if none is named. Each runs in a process of its own and is
kept in ``build/evaluation``; one that was measured at this commit, with these versions on this machine, is not measured
again, so that a run that was ended goes on. Exit status 0 if everything that must hold does, 1 if something does not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ci.evaluation.broken import broken
from ci.evaluation.page import page, pictures
from ci.evaluation.parts import PARTS
from ci.evaluation.result import FOLDER, REPOSITORY, Result, read, surroundings

ALL = {**PARTS, "broken": broken}


def main(arguments: list[str]) -> int:
    """Measure what is missing, print what must hold, write the page."""
    parser = argparse.ArgumentParser(prog="python -m ci.evaluation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(ALL)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="a part of the work, to see that it runs; nothing is kept")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured at this commit")
    parser.add_argument("--page", type=Path, help="write the page, and its pictures beside it, from all that is kept")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)  # of a process that measures one part
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(ALL):
        parser.error(f"expected a part of {', '.join(ALL)}, found {', '.join(sorted(unknown))}")
    if options.into:
        ALL[options.parts[0]](quick=options.quick).write(options.into)
        return 0
    results = {part: _measured(part, quick=options.quick, fresh=options.fresh) for part in options.parts or ALL}
    if options.page:
        _write_page(options.page)
    failed = [part for part, result in results.items() if result is None or not result.held]
    print(f"{len(results)} parts: {', '.join(failed)} failed" if failed else f"{len(results)} parts: everything holds")
    return 1 if failed else 0


def _measured(part: str, *, quick: bool, fresh: bool) -> Result | None:
    """A part's result kept at this commit, or what a process of its own finds now; ``None`` if that breaks."""
    found = None if quick or fresh else read(part, of=surroundings())
    if found is None:
        print(f"{part}: measuring since {time.strftime('%H:%M:%S')}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "ci.evaluation", part, "--into", folder, *(["--quick"] if quick else [])]
            # What planted programs print is nobody's; what a part runs says how far it is on stderr.
            done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, check=False)
            found = read(part, Path(folder)) if done.returncode == 0 else None
        if found is None:
            print(f"{part}: broke with exit status {done.returncode}", flush=True)
            return None
        if not quick:
            found.write()
    for requirement in found.requirements:
        print(f"{part}: {'holds' if requirement.held else 'FAILS'}: {requirement.what}", flush=True)
    print(f"{part}: {found.seconds:.0f} s", flush=True)
    return found


def _write_page(file: Path) -> None:
    lines = [folder for folder in sorted(FOLDER.parent.iterdir()) if folder.is_dir()]
    kept = {folder.name: {part: found for part in ALL if (found := read(part, folder))} for folder in lines}
    file.write_text(page(kept, tuple(ALL)))
    for name, content in pictures(kept).items():
        (file.parent / name).write_bytes(content)
    print(f"written: {file}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
