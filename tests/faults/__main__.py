"""``python -m tests.faults``: plant every fault, run every unchanged program, print the score."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

from tests.faults import catalogue, programs, slowdowns
from tests.faults.runner import run
from tests.faults.scoring import failures, lines, markdown, summary

CORPORA = ("programs", "catalogue", "slowdowns")


def main() -> int:
    """Run, print, and fail if a fault was missed or misblamed, or an unchanged program alarmed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"of {', '.join(CORPORA)}; all if none is named")
    parser.add_argument(
        "--only", default="", metavar="WORD", help="of a fault's name, family or program; or 'unchanged'"
    )
    parser.add_argument("--quick", action="store_true", help="try two fifths of the changes that must not alarm")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the score as a page of the docs")
    parser.add_argument("--target", default="", metavar="TARGET", help="compile for it, such as tpu:v5e:2x4")
    options = parser.parse_args()
    if unknown := set(options.corpora) - set(CORPORA):
        parser.error(f"expected a corpus of {', '.join(CORPORA)}, found {', '.join(sorted(unknown))}")
    wanted = options.corpora or CORPORA
    faults = {
        "programs": programs.FAULTS,
        "catalogue": tuple(itertools.chain.from_iterable(catalogue.FAULTS.values())),
        "slowdowns": slowdowns.FAULTS,
    }
    meant = {
        name: [fault for fault in faults[name] if options.only in f"{fault.kind} {fault.case} {fault.name}"]
        for name in wanted
    }
    unchanged = programs.controls(quick=options.quick) if "programs" in wanted else ()
    score = run(
        [*meant.get("programs", ()), *meant.get("catalogue", ())],
        [control for control in unchanged if options.only in f"unchanged {control.name} {control.case}"],
        () if options.target else meant.get("slowdowns", ()),
        target=options.target,
    )
    wrong = failures(score)
    sys.stdout.write("\n".join([*lines(score), *wrong, *summary(score), ""]))
    if options.markdown:
        options.markdown.write_text(markdown(score))
    return 1 if wrong or not (score.faults or score.unchanged) else 0


if __name__ == "__main__":
    sys.exit(main())
