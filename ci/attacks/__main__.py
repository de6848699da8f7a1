"""Carry out the known attacks on a gate's verdicts, from outside: with any environment where some jaxgate is installed.

Usage: python ci/attacks [--python PATH] [-k WORD] [--keep FOLDER]
"""

import sys

import cases_calls
import cases_settings
import cases_steps
import cases_stored
import cases_strangers
from attack_runner import main

ATTACKS = (*cases_settings.ATTACKS, *cases_calls.ATTACKS, *cases_steps.ATTACKS, *cases_stored.ATTACKS, *cases_strangers.ATTACKS)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], ATTACKS))
