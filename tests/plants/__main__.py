"""``python -m tests.plants``: plant every mistake into the catalogue and say what came of it."""

from __future__ import annotations

import argparse
import sys

from tests.plants.runner import run


def main() -> int:
    """Run, print, and fail if a plant was missed or misblamed."""
    parser = argparse.ArgumentParser(prog="python -m tests.plants", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="of a family's or a plant's name")
    options = parser.parse_args()
    outcomes = run(only=options.only)
    for outcome in outcomes:
        word = "right" if outcome.blamed else "misblamed" if outcome.caught else "missed"
        sys.stdout.write(f"{word:<9}  {outcome.family}: {outcome.name} ({outcome.seconds:.1f} s)\n")
        sys.stdout.write(f"           {outcome.status} {', '.join(outcome.moved)}\n           {outcome.line}\n")
        sys.stdout.write(f"           {outcome.why}\n" if outcome.why else "")
    right = sum(outcome.blamed for outcome in outcomes)
    sys.stdout.write(f"{right} of {len(outcomes)} plants: caught, and the first culprit right\n")
    return 0 if outcomes and right == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
