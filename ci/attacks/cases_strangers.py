"""Attacks 9 and 19, and those of 21 by files: a checkout, or what a run left, that a stranger filled."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from attack import FACTS, Attack, CannotRunError, Seen, seen_of, told
from gated_sources import DOUBLE
from scratch_project import Project, Ran, Workshop

COMMIT = (
    "tree {tree}\nauthor A <a@example.invalid> 1700000000 +0000\ncommitter A <a@example.invalid> 1700000000 +0000\n"
    "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\none\n"
)
BARE = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = {notes}\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {notes}\n"
NETRC = "machine github.com password hunter2"
BOMB_BYTES, MEMORY_BYTES = 400_000_000, 300_000_000
SHA = "a" * 40
GH = """#!{python}
import json, pathlib, sys
path, *options = sys.argv[2:]
here = pathlib.Path({folder!r})
if "--input" in options:
    (here / "posted").write_bytes(sys.stdin.buffer.read())
    raise SystemExit
name = path.partition("?")[0].removeprefix("repos/o/p/").replace("/", "_")
sys.stdout.buffer.write((here / name).read_bytes())
"""


def _stored(workshop: Workshop) -> Project:
    """A project with a baseline, whose listing works."""
    project = workshop.recorded({"test_case.py": DOUBLE}, then=(FACTS,))
    ran = project.jaxgate("baselines")
    if ran.code:
        raise CannotRunError(f"unchanged, jaxgate baselines ends with exit {ran.code}: {ran.last}")
    return project


def _embedded(workshop: Workshop) -> Seen:
    """An embedded bare repository whose settings name a program: listing the baselines must not run it."""
    project = _stored(workshop)
    place = project.path / "baselines"
    mark, notes = project.path.parent / f"{project.path.name}.mark", project.path / "notes.sh"
    notes.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    notes.chmod(0o755)
    bare = project.path.parent / f"{project.path.name}.git"
    project.git("init", "-q", "--bare", "-b", "master", str(bare))
    above = ("-C", str(place.parent), f"--git-dir={bare}", f"--work-tree={place.parent}", "-c", "core.bare=false")
    project.git(*above, "add", place.name)
    tree = project.git(f"--git-dir={bare}", "write-tree")
    (project.path / "commit").write_text(COMMIT.format(tree=tree))
    signed = project.git(f"--git-dir={bare}", "hash-object", "-t", "commit", "-w", "commit")
    project.git(f"--git-dir={bare}", "update-ref", "refs/heads/master", signed)
    for part in ("HEAD", "objects", "refs"):
        shutil.move(bare / part, place / part)
    (place / "config").write_text(BARE.format(notes=notes))
    project.run(["git", "-C", str(place), "log", "--", "."])
    if not mark.exists() or project.run(["git", "-C", str(place), "rev-parse", "--show-toplevel"]).code:
        raise CannotRunError("this git does not take an embedded bare repository for one")
    mark.unlink()
    for arguments in (["baselines"], ["baselines", "--cases"]):
        project.jaxgate(*arguments)
    return told(not mark.exists(), f"its program was {'run' if mark.exists() else 'not run'}")


def _listed(prepare: Callable[[Project], object], wrong: str, *, most_bytes: int = 0) -> Callable[[Workshop], Seen]:
    """``jaxgate baselines`` ends in time, without a traceback, and prints nothing that it must not."""

    def run(workshop: Workshop) -> Seen:
        project = _stored(workshop)
        if most_bytes and project.jaxgate("baselines", most_bytes=most_bytes).code:
            raise CannotRunError("the listing needs more memory than it is given")
        prepare(project)
        rans = [project.jaxgate("baselines", *more, limit_s=30, most_bytes=most_bytes) for more in ((), ("--cases",))]
        faults = [_fault(ran, wrong) for ran in rans]
        return told(not any(faults), next(filter(None, faults), f"exit {rans[0].code}: {rans[0].last}"))

    return run


def _fault(ran: Ran, wrong: str) -> str:
    if ran.code is None:
        return "it hangs"
    if wrong and wrong in ran.text:
        return f"exit {ran.code}, it prints {wrong!r}"
    return f"exit {ran.code}: {ran.last}" if "Traceback" in ran.text or "MemoryError" in ran.text else ""


def _escapes(project: Project) -> None:
    (project.baseline("case/step").parent / "case\x1b[2J\x1b[31mALL GREEN.json").write_text("{")
    project.edit_baseline("case/step", "provenance", commit="\x1b[2J\x1b[31mALL GREEN")


def _waivers(project: Project) -> None:
    secret = project.path.parent / "netrc"
    secret.write_text(f"{NETRC}\n")
    (project.path / "baselines/waivers.toml").symlink_to(secret)


def _pipe(project: Project) -> None:
    os.mkfifo(project.baseline("case/step").parent / "pipe.json")


def _endless(project: Project) -> None:
    (project.baseline("case/step").parent / "endless.json").symlink_to("/dev/zero")


def _bomb(project: Project) -> None:
    (program,) = project.path.glob("baselines/programs/*.gz")
    with gzip.open(program, "wb") as file:
        for _ in range(BOMB_BYTES // 1_000_000):
            file.write(bytes(1_000_000))


def _fingerprint(workshop: Workshop) -> Seen:
    """A program's fingerprint that is a pattern of names."""
    project = _stored(workshop)
    project.edit_baseline("case/step", "fingerprints", program="/**")
    project.edit("test_case.py", "x * 2", "x * 3")
    return seen_of(project.gate("--perf-max-undecided=1"), ("INVALID",))


def _history(workshop: Workshop) -> Seen:
    """``perf-artifacts/history`` leads to a folder of somebody's own."""
    project = _stored(workshop)
    logs = project.path.parent / f"{project.path.name}-logs"
    for number in range(40):
        (logs / f"run-{number}").mkdir(parents=True)
        (logs / f"run-{number}" / "log").write_text("mine")
    history = project.path / "perf-artifacts" / "history"
    if history.exists():
        shutil.rmtree(history)
    history.symlink_to(logs)
    project.edit("test_case.py", "x * 2", "jnp.concatenate([x, x])")
    for _ in range(2):
        project.gate(FACTS, "--perf-profile=always")
    left = len(list(logs.glob("run-*/log")))
    return told(left == 40, f"{left} of 40 foreign folders are left")  # noqa: PLR2004


def _brackets(workshop: Workshop) -> Seen:
    """``jaxgate comment`` has a text whatever results.json is."""
    project = workshop.project({"test_case.py": DOUBLE})
    project.commit()
    project.write("perf-artifacts/results.json", "[" * 200_000)
    project.write("perf-artifacts/summary.md", "## ✅ jaxgate: 1 case passed\n")
    ran = project.jaxgate("comment")
    return told(ran.code == 0 and "❌" in ran.text and "Traceback" not in ran.text, f"exit {ran.code}: {ran.last}")


def _packed(number: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("number", number)
        archive.writestr("comment.md", "<!-- jaxgate -->\n## fine\n")
    return buffer.getvalue()


def _damaged() -> bytes:
    """A member packed by LZMA whose middle is gone."""
    content = bytearray(_packed("7\n" * 200, zipfile.ZIP_LZMA))
    content[45:60] = b"\xff" * 15
    return bytes(content)


def _post(workshop: Workshop, conclusion: str, contents: list[bytes]) -> str:
    """Post what a run left, to a stand-in for GitHub; gives the comment."""
    project = workshop.project({})
    asked = project.run([workshop.python, "-c", "import jaxgate; print(jaxgate.__file__)"])
    script = Path(asked.last).resolve().parents[2] / "ci" / "post_comment.py"
    if not script.exists():
        raise CannotRunError("this jaxgate is not installed from a checkout: it has no ci/post_comment.py")
    origin = {"full_name": "fork/project", "owner": {"login": "fork"}}
    pull = {"number": 7, "head": {"sha": SHA, "ref": "feature", "repo": origin}}
    run = {"event": "pull_request", "conclusion": conclusion, "head_sha": SHA, "head_branch": "feature"}
    artifacts = [
        {"id": n, "name": f"comment-job-{n}", "size_in_bytes": 1000, "expired": False} for n in range(len(contents))
    ]
    answers = {
        "actions_runs_5": run | {"head_repository": origin, "html_url": "URL"},
        "actions_runs_5_artifacts": {"artifacts": artifacts},
        "pulls": [pull],
        "pulls_7": pull,
    }
    folder = project.path / "github"
    folder.mkdir()
    for name, answer in answers.items():
        (folder / name).write_text(json.dumps(answer))
    for n, content in enumerate(contents):
        (folder / f"actions_artifacts_{n}_zip").write_bytes(content)
    (folder / "issues_7_comments").write_bytes(b"31\n")
    (project.path / "bin").mkdir()
    (project.path / "bin/gh").write_text(GH.format(python=sys.executable, folder=str(folder)))
    (project.path / "bin/gh").chmod(0o755)
    path = f"{project.path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    project.run([workshop.python, script, "5"], PATH=path, GITHUB_REPOSITORY="o/p")
    posted = folder / "posted"
    return str(json.loads(posted.read_text())["body"]) if posted.exists() else ""


def _refused(*contents: bytes) -> Callable[[Workshop], Seen]:
    """A run whose artifacts are refused leaves no green comment of an earlier one."""

    def run(workshop: Workshop) -> Seen:
        if "✅" not in _post(workshop, "success", [_packed("7\n")]):
            raise CannotRunError("the comment of a good run is not posted")
        body = _post(workshop, "failure", list(contents))
        return told("❌" in body and "✅" not in body, "a red comment" if body else "no comment: the green one stays")

    return run


ATTACKS = (
    Attack("9", "an embedded bare repository in baselines", _embedded),
    Attack("19a", "an artifact without a number", _refused(_packed("x"))),
    Attack("19b", "nine artifacts", _refused(*[_packed("7\n")] * 9)),
    Attack("19c", "a damaged artifact", _refused(_damaged())),
    Attack("21e", "terminal escapes in names and commits", _listed(_escapes, "\x1b")),
    Attack("21f", "waivers that are a link to secrets", _listed(_waivers, "hunter2")),
    Attack("21g", "a pipe among the baselines", _listed(_pipe, "")),
    Attack("21h", "a file without an end among the baselines", _listed(_endless, "", most_bytes=MEMORY_BYTES)),
    Attack("21i", "a program that unpacks to 400 MB", _listed(_bomb, "", most_bytes=MEMORY_BYTES)),
    Attack("21j", "a fingerprint that is a pattern", _fingerprint),
    Attack("21k", "a history that is a link", _history),
    Attack("21l", "results of 200,000 brackets", _brackets),
)
