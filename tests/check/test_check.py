"""``jaxgate check``: a check that is green only if a run left results of this commit that say so."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from jaxgate.ext.check.command import check
from jaxgate.ext.check.github import WAITS_S, CheckError, Checks

HEAD, MERGE = "a" * 40, "b" * 40


class GitHub:
    """Answers as GitHub's API for checks does; fails as often as it is told to."""

    def __init__(self):
        self.checks = []
        self.asked = []
        self.failing = []  # statuses of the next answers
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, method, path, content):
        """What it says, with its status."""
        address = urlsplit(path)
        parts = address.path.split("/")[1:]
        assert parts[:3] == ["repos", "owner", "project"]
        if method == "POST" and parts[3:] == ["check-runs"]:
            self.checks.append({"id": len(self.checks) + 1} | content)
            return 201, self.checks[-1]
        if method == "PATCH" and parts[3] == "check-runs":
            self.checks[int(parts[4]) - 1] |= content
            return 200, self.checks[int(parts[4]) - 1]
        if method == "GET" and parts[3] == "commits" and parts[5] == "check-runs":
            query = parse_qs(address.query)
            same = (parts[4], query["check_name"][0])
            found = [one for one in self.checks if (one["head_sha"], one["name"]) == same]
            return 200, {"total_count": len(found), "check_runs": found}
        return 404, {"message": "Not Found"}

    def _handler(self):
        github = self

        def take(self):
            content = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            github.asked.append((self.command, self.path, self.headers["Authorization"]))
            failed = github.failing.pop(0) if github.failing else 0
            status, answer = (failed, {}) if failed else github.answer(self.command, self.path, content)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        methods = {f"do_{method}": take for method in ("GET", "POST", "PATCH")}
        return type("Handler", (BaseHTTPRequestHandler,), methods | {"log_message": lambda *_: None})


@pytest.fixture
def github():
    """The other side."""
    server = GitHub()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def job(github, tmp_path):
    """One job of a workflow: begins and ends its check; gives exit codes."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"head": {"sha": HEAD}}}))
    folder = tmp_path / "perf-artifacts"
    folder.mkdir()

    class Job:
        def __init__(self):
            self.waited = []
            self.environ = {
                "GITHUB_REPOSITORY": "owner/project",
                "GITHUB_SHA": MERGE,
                "GITHUB_RUN_ID": "77",
                "GITHUB_RUN_ATTEMPT": "1",
                "GITHUB_API_URL": github.url,
                "GITHUB_TOKEN": "secret",
                "GITHUB_EVENT_PATH": str(event),
            }

        def __call__(self, when, name="jaxgate", **environ):
            return check(when, name, folder, self.environ | environ, wait=self.waited.append)

        def leave(self, text=None, **about):
            content = {"gate_exit": 0, "commit": MERGE} | about
            (folder / "results.json").write_text(json.dumps(content) if text is None else text)
            (folder / "summary.md").write_text("## the page, @somebody\n")

    return Job()


def states(github):
    """Name, status and conclusion of each check."""
    return [(one["name"], one["status"], one.get("conclusion")) for one in github.checks]


def test_a_run_that_is_fine_is_green(github, job):
    """The head of the pull request carries the check, though a merge was judged; the page calls nobody."""
    assert job("begin") == 0
    assert states(github) == [("jaxgate", "in_progress", None)]
    job.leave()
    assert job("end") == 0
    assert states(github) == [("jaxgate", "completed", "success")]
    (one,) = github.checks
    assert one["head_sha"] == HEAD
    assert one["output"]["title"] == "passed"
    assert "@" not in one["output"]["summary"]
    assert one["details_url"] == "https://github.com/owner/project/actions/runs/77/attempts/1"
    assert {token for *_, token in github.asked} == {"Bearer secret"}
    job("begin", GITHUB_EVENT_PATH="/no/such/file")
    assert github.checks[1]["head_sha"] == MERGE, "a push has its own commit"


RED = {
    "killed": None,
    "never begun": None,
    "regressed": {"gate_exit": 1},
    "not all judged": {"gate_exit": 2},
    "no baselines": {"gate_exit": 3},
    "another commit": {"commit": HEAD},
    "no commit": {"commit": None},
    "one part of several": {"shard": {"number": 1, "of": 4}},
    "no exit code": {"gate_exit": "fine"},
    "an unknown exit code": {"gate_exit": 7},
    "false, which Python takes for 0": {"gate_exit": False},
    "half a file": {"text": '{"gate_exit": 0, "commit": "'},
    "no results": {"text": "[]"},
}


@pytest.mark.parametrize("why", RED)
def test_whatever_is_not_known_to_be_fine_is_red(github, job, why):
    """Also of a run that was killed, or never began, and of results that were never uploaded, or are older."""
    if why != "never begun":
        job("begin")
    if RED[why] is not None:
        job.leave(**RED[why])
    assert job("end") == 1
    assert states(github) == [("jaxgate", "completed", "failure")]


def test_the_late_end_of_a_run_does_not_write_over_the_next(github, job):
    """Each attempt has a check of its own; the newest one counts."""
    job("begin")
    job("begin", GITHUB_RUN_ATTEMPT="2")
    job.leave()
    assert job("end") == 0
    assert states(github) == [("jaxgate", "completed", "success"), ("jaxgate", "in_progress", None)]
    job.leave(gate_exit=1)
    assert job("end", GITHUB_RUN_ATTEMPT="2") == 1
    assert states(github)[-1] == ("jaxgate", "completed", "failure")


def test_two_targets_of_one_run_have_a_check_each(github, job):
    job("begin", "jaxgate (cpu)")
    job("begin", "jaxgate (gpu:h200:8)")
    job.leave()
    job("end", "jaxgate (gpu:h200:8)")
    assert states(github) == [("jaxgate (cpu)", "in_progress", None), ("jaxgate (gpu:h200:8)", "completed", "success")]


def test_what_is_githubs_own_fault_is_tried_again(github, job):
    """Three times in all; then it is said, and the job is red."""
    github.failing = [502, 500]
    assert job("begin") == 0
    assert job.waited == list(WAITS_S)
    github.failing = [502, 500, 503]
    assert job("begin") == 2


def test_the_token_follows_nobody(github, job, capsys):
    """GitHub does not send its callers elsewhere; whoever does might keep what they bring."""
    github.failing = [302]
    assert job("begin") == 2
    assert "HTTP Error 302" in capsys.readouterr().err
    assert len(github.asked) == 1


def test_a_token_that_may_not_write_is_told(github, job, capsys):
    """At once, with the permission that is missing; the token is not printed."""
    github.failing = [403]
    assert job("begin") == 2
    said = capsys.readouterr().err
    assert "GitHub did not take POST /check-runs: HTTP Error 403" in said
    assert "checks: write" in said
    assert "secret" not in said
    assert job.waited == []


@pytest.mark.parametrize("missing", ["GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_TOKEN"])
def test_outside_of_a_job_it_says_what_is_missing(job, missing, capsys):
    assert job("begin", **{missing: ""}) == 2
    assert f"found no {missing}" in capsys.readouterr().err


def test_the_token_does_not_travel_unencrypted(job):
    """Only to this machine itself, as in these tests."""
    with pytest.raises(CheckError, match="https"):
        Checks("jaxgate", job.environ | {"GITHUB_API_URL": "http://example.com"}, job.waited.append)
