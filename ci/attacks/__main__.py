"""Carry out the known attacks on a gate's verdicts, from outside: with any environment where some jaxgate is installed.

Usage: python ci/attacks [--python PATH] [-k WORD] [--keep FOLDER]   (about 10 minutes on 2 cores)

Each attack records a small project of its own, makes sure that it passes as it is, changes it, and gates as CI does. It is
*held* where verdict, exit code and text are right, *FOOLED* where they are not; whatever else happens, it could not be run.
Nothing of jaxgate is imported here: only what is printed, the exit code, ``results.json``, files and git are looked at,
so that any revision can be attacked. Attacks run in sequence, as some are timed.

Not here: 12, a new jax, needs two of them: somebody records ``ci/test_releases.py`` with one and gates it with the other. Nor, of
21, a cache of executables that is warm while recording (``tests/engine/test_record.py``).

Exit status 0 if every chosen attack is held, 1 if one is not or could not be run, 2 if none is chosen.
"""

import sys

import cases_calls
import cases_settings
import cases_steps
import cases_stored
import cases_strangers
from attack_runner import main

ATTACKS = (
    *cases_settings.ATTACKS,
    *cases_calls.ATTACKS,
    *cases_steps.ATTACKS,
    *cases_stored.ATTACKS,
    *cases_strangers.ATTACKS,
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], ATTACKS))
