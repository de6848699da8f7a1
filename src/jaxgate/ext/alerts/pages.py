"""A run as alerts: SARIF 2.1.0 for GitHub and editors, and the subset of Code Climate's format that GitLab reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from jaxgate.model.outcome import RunRecord
from jaxgate.report.printable import json_text
from jaxgate.report.pull_request import place

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that a reviewer should see at a line."""

    rule: str  # the fact or claim that is red, else the status
    subject: str  # the case, or the test that gave no verdict
    file: str  # within the repository
    line: int
    short: str
    text: str = ""  # the whole failure text

    @property
    def fingerprint(self) -> str:
        """Names the alert in every run, wherever its line has moved."""
        return hashlib.blake2b(f"{self.rule}\0{self.subject}".encode(), digest_size=16).hexdigest()


def alerts(run: RunRecord) -> Iterator[Alert]:
    """What is red in a run: the cases that failed, and the tests that were not judged."""
    for case in run.cases:
        if case.fails:
            worst = case.findings[0].name if case.findings else case.status
            short = f"{case.status} {case.case}: {next(iter(case.causes), worst)}"
            yield Alert(worst, case.case, *place(case.line), short, case.text)
    for test in run.not_judged:
        file = run.project + test.partition("::")[0]
        yield Alert("not judged", test, file, 1, f"NOT JUDGED {test}: its gate gave no verdict")


def sarif(run: RunRecord) -> str:
    """A SARIF log with one run; runs on other hardware have another category, so that none replaces the alerts of another."""
    found = list(alerts(run))
    hardware = next((case.folder for case in run.cases if case.folder), "unknown")
    names = sorted({alert.rule for alert in found})
    about = {"defaultConfiguration": {"level": "error"}}
    rules = [{"id": name, "shortDescription": {"text": f"jaxgate: {name}"}, **about} for name in names]
    return json_text(
        {
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "jaxgate", "version": run.jaxgate, "rules": rules}},
                    "automationDetails": {"id": f"jaxgate/{hardware}/"},
                    "columnKind": "unicodeCodePoints",
                    "results": [_result(alert, names.index(alert.rule)) for alert in found],
                }
            ],
        }
    )


def code_quality(run: RunRecord) -> str:
    """GitLab's report: a list, empty where nothing is red."""
    return json_text(
        [
            {
                "description": alert.short,
                "check_name": alert.rule,
                "fingerprint": alert.fingerprint,
                "severity": "critical",
                "location": {"path": alert.file, "lines": {"begin": alert.line}},
            }
            for alert in alerts(run)
        ]
    )


def _result(alert: Alert, rule: int) -> dict[str, Any]:
    where = {
        "artifactLocation": {"uri": quote(alert.file), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": alert.line},
    }
    return {
        "ruleId": alert.rule,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": f"{alert.short}\n\n{alert.text}".rstrip()},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"jaxgateCase/v1": alert.fingerprint},
    }


PAGES = {"results.sarif": sarif, "codequality.json": code_quality}
"""What is written beside ``results.json``, each made of what that says; also where nothing is red."""
