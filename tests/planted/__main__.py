"""``python -m tests.planted``: plant every fault, run every unchanged program, print the score."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.planted.runner import run
from tests.planted.scoring import failures, markdown, summary


def main() -> int:
    """Run, print, and fail if a fault was missed or misblamed, or an unchanged program alarmed."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="WORD", help="of a fault's name, family or program; or 'unchanged'"
    )
    parser.add_argument("--quick", action="store_true", help="try two fifths of the changes that must not alarm")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the score as a page of the docs")
    options = parser.parse_args()
    score = run(only=options.only, quick=options.quick)
    wrong = failures(score)
    sys.stdout.write("\n".join([*wrong, *summary(score), ""]))
    if options.markdown:
        options.markdown.write_text(markdown(score))
    return 1 if wrong or not (score.faults or score.unchanged) else 0


if __name__ == "__main__":
    sys.exit(main())
