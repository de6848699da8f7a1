"""Checks of a commit, by GitHub's API. What a workflow's variables say is all that it knows."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxgate.ext.check.text import Conclusion
from jaxgate.keep.files import read_json

TIMEOUT_S = 20.0
WAITS_S = (1.0, 4.0)
"""Before GitHub is asked again that did not answer, or said that it is its own fault."""
_OWN_FAULT = 500
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_FORBIDDEN = (401, 403, 404)
_NEEDS = "the job needs the permission `checks: write`, which one of a pull request from a fork never gets"
ANSWER_BYTES = 8 * 1024**2


class CheckError(Exception):
    """The check could not be written; the text says why."""


class _NotElsewhere(urllib.request.HTTPRedirectHandler):
    """Follows GitHub nowhere: the token would go along."""

    def redirect_request(self, *_: Any) -> None:
        """Nothing is asked; the answer is an error then."""


_OPENER = urllib.request.build_opener(_NotElsewhere)


class Checks:
    """The check of one name, by which a rule of a branch requires it, of one attempt of one run.

    Raises:
        CheckError: If a variable is missing, or the token would travel unencrypted.
    """

    def __init__(self, name: str, environ: Mapping[str, str], wait: Callable[[float], None]) -> None:
        needed = ("GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_RUN_ID")
        missing = [key for key in needed if not environ.get(key)]
        token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN")
        if missing or not token:
            found = ", ".join([*missing, *([] if token else ["GITHUB_TOKEN"])])
            raise CheckError(f"expected the variables of a job of GitHub's, found no {found}")
        api = environ.get("GITHUB_API_URL") or "https://api.github.com"
        address = urllib.parse.urlsplit(api)
        if address.scheme != "https" and address.hostname not in _LOOPBACK:
            raise CheckError(f"expected an address with https, found GITHUB_API_URL={api}: the token would be readable")
        self._api = f"{api.rstrip('/')}/repos/{environ['GITHUB_REPOSITORY']}"
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Content-Type": "application/json",
            "User-Agent": "jaxgate",
        }
        self._wait = wait
        self._sha = _head(environ)
        run, attempt = environ["GITHUB_RUN_ID"], environ.get("GITHUB_RUN_ATTEMPT") or "1"
        server = environ.get("GITHUB_SERVER_URL") or "https://github.com"
        self._about = {
            "name": name,
            "external_id": f"jaxgate/{run}/{attempt}",
            "details_url": f"{server}/{environ['GITHUB_REPOSITORY']}/actions/runs/{run}/attempts/{attempt}",
        }

    def begin(self) -> None:
        """Set the check to "in progress". A lost run leaves it so, and nothing that requires it goes on."""
        output = {"title": "running", "summary": "The gate has begun and has not ended yet."}
        self._ask(
            "POST", "/check-runs", self._about | {"head_sha": self._sha, "status": "in_progress", "output": output}
        )

    def end(self, found: Conclusion) -> None:
        """Conclude the check, also where it was never begun."""
        about = self._about | {
            "status": "completed",
            "conclusion": "success" if found.passed else "failure",
            "output": {"title": found.title, "summary": found.page},
        }
        query = urllib.parse.urlencode({"check_name": self._about["name"], "filter": "all", "per_page": 100})
        answer = self._ask("GET", f"/commits/{self._sha}/check-runs?{query}")
        own = [one["id"] for one in answer["check_runs"] if one.get("external_id") == self._about["external_id"]]
        if own:
            self._ask("PATCH", f"/check-runs/{max(own)}", about)
        else:
            self._ask("POST", "/check-runs", about | {"head_sha": self._sha})

    def _ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        for wait_s in (*WAITS_S, None):
            try:
                return self._once(method, path, content)
            except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError) as error:
                refused = isinstance(error, urllib.error.HTTPError) and error.code < _OWN_FAULT
                if refused or wait_s is None:
                    raise CheckError(_why(method, path, error)) from None
                self._wait(wait_s)
        raise AssertionError  # the last wait is none

    def _once(self, method: str, path: str, content: Mapping[str, Any] | None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self._api}{path}", data=data, headers=self._headers, method=method)  # noqa: S310 - https, or loopback
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(ANSWER_BYTES))


def _why(method: str, path: str, error: Exception) -> str:
    what = f"GitHub did not take {method} {path.partition('?')[0]}: {error}"
    return f"{what}; {_NEEDS}" if isinstance(error, urllib.error.HTTPError) and error.code in _FORBIDDEN else what


def _head(environ: Mapping[str, str]) -> str:
    """The commit that carries the check: of a pull request its head, though the run judges what a merge would give."""
    try:
        event = read_json(Path(environ["GITHUB_EVENT_PATH"]))
        return str(event["pull_request"]["head"]["sha"])
    except (KeyError, TypeError, OSError, ValueError):
        return environ["GITHUB_SHA"]
