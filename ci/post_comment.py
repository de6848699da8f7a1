"""Post what a gate run left for its pull request, as one comment that later runs replace.

Usage: python3 ci/post_comment.py RUN_ID   (needs gh, GH_TOKEN and GITHUB_REPOSITORY; nothing is installed)

The text comes from a run of code that nobody has read, so it is data: artifacts are read in memory and within limits, never
unpacked, and the text is shown as letters that nobody obeys (``report/comment.py: inert``). It is posted only where GitHub itself says that the head of the pull request is the commit of the run. How
the run ended is GitHub's word, too, and stands first: where no text was left, it stands alone, in red.

Exit: 0 posted, or nothing to post to · 1 refused: what the run left is not what the gate leaves, and the comment says so in
red; or GitHub did not answer
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from os import environ
from pathlib import Path
from runpy import run_path
from typing import Any

# One file of the package: importing the package itself needs what is not installed where this runs.
_COMMENT = run_path(str(Path(__file__).resolve().parents[1] / "src" / "jaxgate" / "report" / "comment.py"))
MARK: str = _COMMENT["MARK"]
inert: Callable[[str, int], str] = _COMMENT["inert"]
unmarked: Callable[[str], str] = _COMMENT["unmarked"]

AUTHOR = "github-actions[bot]"
ARTIFACT = re.compile(r"comment-([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
MOST_PARTS, MOST_BYTES, LONGEST = 8, 400_000, 60_000
"""Texts of one run; bytes of an artifact and of a file in it; characters of all texts (GitHub takes 65,536)."""
REFUSED = "❌ What the run left for this comment was refused; the log of the job that posts says why."
FOLD = "<details><summary>What failed, and what else is known</summary>\n\n{}\n\n</details>"
NO_TEXT = "❌ This job left no text; its log says why."


class RefusedError(Exception):
    """What the run left is not what the gate leaves, or GitHub did not answer."""


class MovedOnError(Exception):
    """A newer commit of the pull request has a run of its own, which comments."""


def main(arguments: Sequence[str]) -> int:
    """Post the comment of the run that has the id on the command line; gives the exit code."""
    repository = environ.get("GITHUB_REPOSITORY", "")
    if len(arguments) != 1 or not re.fullmatch(r"[0-9]{1,20}", arguments[0]) or not repository:
        print("post_comment: expected the id of a run, and GITHUB_REPOSITORY", file=sys.stderr)
        return 1
    try:
        done = post(f"repos/{repository}", arguments[0])
    except RefusedError as refused:
        print(f"post_comment: {refused}", file=sys.stderr)
        return 1
    print(f"post_comment: {done}")
    return 0


def post(repository: str, run_id: str) -> str:
    """Find the pull request of a run, leave its comment there, and say what was done.

    Raises:
        RefusedError: If what the run left cannot be trusted to be of this pull request.
    """
    run = ask(f"{repository}/actions/runs/{run_id}")
    if run["event"] != "pull_request":
        return f"run {run_id} is not of a pull request"
    if not run["conclusion"]:
        return f"run {run_id} is running again"
    try:
        parts = [read_part(repository, artifact) for artifact in newest(repository, run_id)]
        pulls = pulls_of(repository, run, {number for number, _, _ in parts})
    except MovedOnError as moved:
        return str(moved)
    except RefusedError:  # the author chooses what a run leaves: the comment of an earlier one must not stand, in green
        for pull in without_text(repository, run):
            put(repository, pull["number"], page(run, [], REFUSED))
        raise
    pulls = pulls or without_text(repository, run)
    body = page(run, [(label, text) for _, label, text in parts])
    for pull in pulls:
        put(repository, pull["number"], body)
    numbers = ", ".join(f"#{pull['number']}" for pull in pulls)
    return f"commented on {numbers}" if pulls else f"no open pull request has {run['head_sha']} at its head"


def pulls_of(repository: str, run: Mapping[str, Any], numbers: Collection[int]) -> list[dict[str, Any]]:
    """The pull request that the texts of a run name; nothing where there is no text.

    Raises:
        RefusedError: If they name several, or one that is not of the run's branch.
        MovedOnError: If its head is another commit by now.
    """
    pulls = [ask(f"{repository}/pulls/{number}") for number in sorted(numbers)]
    if len(pulls) > 1:
        raise RefusedError("expected texts for one pull request, found several")
    for pull in pulls:
        if source(pull) != (run["head_repository"] or {}).get("full_name") or pull["head"]["ref"] != run["head_branch"]:
            raise RefusedError(f"expected a pull request of the run's branch, found #{pull['number']} of another one")
        if pull["head"]["sha"] != run["head_sha"]:
            raise MovedOnError(f"#{pull['number']} has moved on from {run['head_sha']}: its newer run comments")
    return pulls


def without_text(repository: str, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The open pull requests whose head is the commit of a run that broke before it could name its own."""
    owner = ((run["head_repository"] or {}).get("owner") or {}).get("login")
    if not owner:
        return []
    head = f"head={owner}:{run['head_branch']}"
    found = ask(f"{repository}/pulls", "--method", "GET", "-f", "state=open", "-f", head, "-f", "per_page=100")
    same = (run["head_sha"], run["head_repository"]["full_name"], run["head_branch"])
    return [pull for pull in found if (pull["head"]["sha"], source(pull), pull["head"]["ref"]) == same]


def source(pull: Mapping[str, Any]) -> str | None:
    """The repository that a pull request comes from; ``None`` if that is gone."""
    name = (pull["head"]["repo"] or {}).get("full_name")
    return None if name is None else str(name)


def newest(repository: str, run_id: str) -> list[dict[str, Any]]:
    """The artifacts with texts, one of each name: a job that ran twice left two."""
    answer = ask(f"{repository}/actions/runs/{run_id}/artifacts?per_page=100")
    found = {
        artifact["name"]: artifact
        for artifact in sorted(answer["artifacts"], key=lambda artifact: int(artifact["id"]))
        if ARTIFACT.fullmatch(artifact["name"]) and not artifact["expired"]
    }
    if len(found) > MOST_PARTS:
        raise RefusedError(f"expected {MOST_PARTS} texts at most, found {len(found)}")
    return [found[name] for name in sorted(found)]


def read_part(repository: str, artifact: Mapping[str, Any]) -> tuple[int, str, str]:
    """Read a text without unpacking it.

    Returns:
        The number of the pull request as the artifact has it, its label, and the text.

    Raises:
        RefusedError: If it is too large, or not what the gate writes.
    """
    name = artifact["name"]
    if artifact["size_in_bytes"] > MOST_BYTES:
        raise RefusedError(f"expected {MOST_BYTES:,} bytes at most in {name}, found {artifact['size_in_bytes']:,}")
    content = gh(f"{repository}/actions/artifacts/{int(artifact['id'])}/zip")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            number, text = (_member(archive, member) for member in ("number", "comment.md"))
    except RefusedError:
        raise
    except Exception as error:  # noqa: BLE001 - each way of packing has errors of its own
        raise RefusedError(f"expected number and comment.md in {name}, found {type(error).__name__}") from None
    if not re.fullmatch(r"[1-9][0-9]{0,9}\n?", number, re.ASCII):
        raise RefusedError(f"expected the number of a pull request in {name}, found something else")
    label = name.removeprefix("comment-").replace("-", " ")
    return int(number), label, text.removeprefix(f"{MARK}\n").strip()


def _member(archive: zipfile.ZipFile, name: str) -> str:
    """One file of an archive; its own word for its size is not believed."""
    with archive.open(name) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise RefusedError(f"expected {MOST_BYTES:,} bytes at most in {name}, found more")
    return content.decode("utf-8")


def page(run: Mapping[str, Any], parts: Sequence[tuple[str, str]], without: str = "") -> str:
    """The comment: how the run ended, as GitHub has it, then the text of each job, or what stands there ``without`` any."""
    sign = "✅" if run["conclusion"] == "success" and parts and all(text for _, text in parts) else "❌"
    first = f"{sign} The gate of `{run['head_sha'][:10]}` ended: **{run['conclusion']}** ([run]({run['html_url']}))"
    room = LONGEST // max(len(parts), 1)
    texts = [f"### `{label}`\n\n{quoted(text, room) if text else NO_TEXT}" for label, text in parts]
    return "\n\n".join([f"{MARK}\n{first}", *(texts or [without or NO_TEXT.replace("This job", "The run")])]) + "\n"


def quoted(text: str, longest: int) -> str:
    """A text of the run, which may say anything: how it ended and what moved is seen at once, the rest is folded away."""
    first, _, rest = text.partition("<details>")
    seen = inert(unmarked(first), longest // 2 if rest else longest)
    return f"{seen}\n\n{FOLD.format(inert(unmarked(rest), longest - len(seen) - len(FOLD)))}" if rest else seen


def put(repository: str, number: int, body: str) -> None:
    """Replace our comment, or leave the first one."""
    mine = f'.[] | select(.user.login == "{AUTHOR}" and ((.body // "") | startswith("{MARK}"))) | .id'
    comments = f"{repository}/issues/{int(number)}/comments"
    ids = gh(f"{comments}?per_page=100", "--paginate", "--jq", mine).split()
    where = ("PATCH", f"{repository}/issues/comments/{int(ids[0])}") if ids else ("POST", comments)
    gh(where[1], "--method", where[0], "--input", "-", content=json.dumps({"body": body}).encode())


def ask(path: str, *options: str) -> Any:
    """A JSON answer of GitHub's API."""
    return json.loads(gh(path, *options))


def gh(path: str, *options: str, content: bytes = b"") -> bytes:
    """Call GitHub's API."""
    command = ["gh", "api", path, *options]
    done = subprocess.run(command, input=content, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").split("\n")[0]
        raise RefusedError(f"GitHub did not answer {path}: {said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
