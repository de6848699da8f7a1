"""What a stranger named is shown, and does nothing else: on a terminal, in a log, on a page."""

import datetime as dt
import json
import shlex
import unicodedata
from dataclasses import replace

import pytest
from support.factories import measurement, record, verdict

from jaxgate.cli.baselines import inventory_json, inventory_text
from jaxgate.model.decision import Status
from jaxgate.model.inventory import Inventory, KeptCase, StoredFile
from jaxgate.model.outcome import Outcome
from jaxgate.model.verdict import Finding
from jaxgate.report.case_page import report
from jaxgate.report.printable import json_text, printable, printable_line, shell_word
from jaxgate.report.pull_request import error_commands, pull_request_page
from jaxgate.report.results import results_json
from jaxgate.report.summary import review_lines, summary
from jaxgate.report.text import explain

EVIL = "a\x1b[2J\x1b]0;title\x07b\x9b31m\x7f\r\u202egreen\u2066\u2028\udcff"
"""Clears the screen, sets the title, colours, goes to the begin of the line, turns words around; and no text at all."""
ALLOWED = {"\n", "\t"}
TODAY = dt.date(2026, 12, 1)


def acts(text):
    """The characters of a text that do something, or cannot be encoded."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp", "Cf") and c not in ALLOWED}


def test_every_control_character_is_shown_by_its_number():
    assert printable("tanh → ≤ × größer 日本\t\n") == "tanh → ≤ × größer 日本\t\n"
    assert printable("\x1b[2J") == "\\u001b[2J"
    others = (0x61C, 0x200E, *range(0x202A, 0x202F), 0x2066, 0xDC80, 0xAD, 0x200B, 0x200D, 0x2060)
    every = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), *others)))
    assert acts(printable(every)) == set()
    assert printable_line("one\ntwo") == "one two"


def evil_verdict():
    """A case in which every text is a stranger's."""
    finding = Finding(kind="fact", name=EVIL, status=Status.REGRESSED, detail=EVIL)
    return verdict(Status.REGRESSED, finding, case=f"model/{EVIL}", described=EVIL, changes=(EVIL,))


KEPT = KeptCase(
    hardware=EVIL, line="0.10", case=f"a/{EVIL}", date=EVIL, commit=EVIL, environment={"jax": EVIL}, why_no_program="", has_program=False,
    by=EVIL, why=EVIL,
)  # fmt: skip
STORED = Inventory(
    cases=(KEPT,),
    unreadable=((EVIL, EVIL),),
    programs=(StoredFile(path=EVIL, nbytes=1),),
    unreferenced=(),
    waivers=(),
    waiver_problem=EVIL,
)
OUTCOME = Outcome(
    verdicts=(evil_verdict(),), tests={f"model/{EVIL}": EVIL}, texts={f"model/{EVIL}": EVIL}, problems=(EVIL,),
    not_judged=(EVIL,), needs_commit=(EVIL,), baseline_edits=(EVIL,), judge_edits=(EVIL,),
)  # fmt: skip
PAGES = {
    "explain": lambda: explain(evil_verdict(), test=EVIL),
    "summary": lambda: "".join(f"{word}{rest}" for _, word, rest in summary([evil_verdict()], width=None)),
    "review": lambda: "\n".join(review_lines(evil_verdict())),
    "table": lambda: inventory_text(STORED, TODAY),
    "cases": lambda: inventory_text(STORED, TODAY, cases=True),
    "inventory as JSON": lambda: json_text(inventory_json(STORED, TODAY)),
    "page": lambda: pull_request_page(OUTCOME),
    "results": lambda: results_json(OUTCOME),
    "bundle": lambda: report(evil_verdict(), measurement(), record(), EVIL, [], logdir="x"),
}


@pytest.mark.parametrize("page", PAGES)
def test_no_page_does_anything(page):
    """The name is there, its control characters are not; what is printed can be encoded."""
    text = PAGES[page]()
    assert "31m" in text
    assert acts(text) == set()
    text.encode()


@pytest.mark.parametrize("page", ["inventory as JSON", "results"])
def test_json_says_the_same_as_before(page):
    """An escape of JSON's own: who reads it has the name as it is."""
    found = json.loads(PAGES[page]())
    assert found["cases"][0]["case"].endswith(EVIL)


def test_a_name_is_no_line_of_its_own():
    """A line of the summary begins with a verdict, and a name cannot add one."""
    forged = replace(verdict(), time=replace(verdict().time, reason="x\nSAME  model/step  all is well"))
    assert all("\n" not in rest for _, _, rest in summary([forged], width=None))
    stored = replace(STORED, unreadable=(("a\nstore    all is well", ""),))
    assert not any(line.startswith("store    all") for line in inventory_text(stored, TODAY).splitlines())
    assert all(
        "\n" not in command
        for command in error_commands(Outcome(verdicts=(replace(forged, fails=True),), tests={}, texts={}))
    )


@pytest.mark.parametrize("name", ["a b", "it's", "'; touch x; '", "$(x) `y`"])
def test_a_command_to_copy_has_one_word(name):
    """Whoever pastes it into a shell runs what it says, and nothing that a file is named."""
    assert shlex.split(f"git rm {shell_word(name)}") == ["git", "rm", name]
