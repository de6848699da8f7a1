"""``python -m tests.opinions``: a second opinion on every program's result; fails where one differs."""

from __future__ import annotations

import argparse
import sys

import jax

from tests.opinions.sweep import sweep
from tests.opinions.table import HEAD, line, row, summary

CORPORA = ("catalogue", "planted")


def main() -> int:
    """Print a line for each program as it is asked about, then what all of it cost."""
    parser = argparse.ArgumentParser(prog="python -m tests.opinions", description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"of {', '.join(CORPORA)}; both if none is named")
    parser.add_argument("--only", default="", metavar="REGEX", help="that fits a program's name")
    parser.add_argument("--seconds", type=float, default=20.0, help="that an opinion may take, as perf_opinion")
    parser.add_argument("--second-compile", action="store_true", help="ask the interpreter nothing")
    options = parser.parse_args()
    if unknown := set(options.corpora) - set(CORPORA):
        parser.error(f"expected a corpus of {', '.join(CORPORA)}, found {', '.join(sorted(unknown))}")
    found = []
    sys.stdout.write(f"jax {jax.__version__}\n{line(HEAD)}\n")
    for asked in sweep(
        options.corpora or CORPORA, only=options.only, limit_s=options.seconds, interpreted=not options.second_compile
    ):
        found.append(asked)
        sys.stdout.write(f"{line(row(asked))}\n")
        sys.stdout.flush()
    sys.stdout.write("\n".join([*summary(found), ""]))
    wrong = any(one.opinion is not None and one.opinion.wrong for one in found)
    failed = [one.name for one in found if one.failed]
    sys.stdout.write("".join(f"FAILED {name}\n" for name in failed))
    return 1 if wrong or failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
