"""``ci/post_comment.py``: what a gate run left is posted to its own pull request, and nowhere else."""

import html
import importlib.util
import io
import json
import re
import subprocess
import sys
import zipfile

import pytest
from markdown_it import MarkdownIt
from support.paths import REPOSITORY

SCRIPT = REPOSITORY / "ci" / "post_comment.py"
SHA, OTHER = "a" * 40, "b" * 40
PATCH = ["--method", "PATCH"]
POST = ["--method", "POST"]


def pull(number=7, sha=SHA, name="fork/project", ref="feature"):
    """A pull request as GitHub tells it."""
    repo = None if name is None else {"full_name": name}
    return {"number": number, "head": {"sha": sha, "ref": ref, "repo": repo}}


def packed(number="7\n", text="<!-- jaxgate -->\n## fine\n", **more):
    """An artifact as GitHub zips it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"number": number, "comment.md": text, **more}.items():
            if content is not None:
                archive.writestr(name, content)
    return buffer.getvalue()


def damaged():
    """A member packed by LZMA whose middle is gone: the module raises an error of its own."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("number", "7\n" * 200)
        archive.writestr("comment.md", "text")
    content = bytearray(buffer.getvalue())
    content[45:60] = b"\xff" * 15
    return bytes(content)


class GitHub:
    """Answers as GitHub's API does, and keeps what is posted."""

    def __init__(self):
        self.run = {"event": "pull_request", "conclusion": "success", "head_sha": SHA, "head_branch": "feature"}
        self.run |= {"head_repository": {"full_name": "fork/project", "owner": {"login": "fork"}}, "html_url": "URL"}
        self.artifacts = []
        self.pulls = {7: pull()}
        self.comments = b""
        self.posted = []

    def leave(self, content=None, name="comment-python-3.12", size=1000, **more):
        """Leave an artifact."""
        zipped = packed() if content is None else content
        artifact = {"id": len(self.artifacts) + 1, "name": name, "size_in_bytes": size, "expired": False, **more}
        self.artifacts.append((artifact, zipped))

    def __call__(self, path, *options, content=b""):
        """Answer a call."""
        path = path.removeprefix("repos/o/p").partition("?")[0]
        if content:
            self.posted.append((path, list(options[:2]), json.loads(content)["body"]))
            return b"{}"
        if path == "/actions/runs/5":
            return json.dumps(self.run).encode()
        if path == "/actions/runs/5/artifacts":
            return json.dumps({"artifacts": [artifact for artifact, _ in self.artifacts]}).encode()
        if path.startswith("/actions/artifacts/"):
            return self.artifacts[int(path.split("/")[3]) - 1][1]
        if path == "/pulls":
            assert "head=fork:feature" in options
            return json.dumps(list(self.pulls.values())).encode()
        if path.startswith("/pulls/"):
            return json.dumps(self.pulls[int(path.split("/")[2])]).encode()
        assert path in ("/issues/7/comments", "/issues/8/comments")
        assert "--paginate" in options
        return self.comments


@pytest.fixture
def script():
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("post_comment", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def github(script, monkeypatch):
    """GitHub, as the program reaches it."""
    fake = GitHub()
    monkeypatch.setattr(script, "gh", fake)
    monkeypatch.setitem(script.environ, "GITHUB_REPOSITORY", "o/p")
    return fake


def test_posts_the_texts_of_all_jobs_in_one_comment(script, github):
    """The mark comes first, then GitHub's own word, then each text under its label."""
    github.leave(packed(text="<!-- jaxgate -->\n## red\n"), "comment-python-3.12")
    github.leave(packed(text="<!-- jaxgate -->\n## fine\n"), "comment-python-3.11")
    github.leave(b"no zip", "perf-artifacts-python-3.11")
    assert script.main(["5"]) == 0
    ((path, method, body),) = github.posted
    assert (path, method) == ("/issues/7/comments", POST)
    assert body == (
        "<!-- jaxgate -->\n✅ The gate of `aaaaaaaaaa` ended: **success** ([run](URL))\n\n"
        "### `python 3.11`\n\n<pre>&#102;ine</pre>\n\n### `python 3.12`\n\n<pre>&#114;ed</pre>\n"
    )


def test_replaces_its_own_comment(script, github):
    """Where GitHub finds a comment of ours, that one is edited."""
    github.leave()
    github.comments = b"31\n"
    assert script.main(["5"]) == 0
    assert [call[:2] for call in github.posted] == [("/issues/comments/31", PATCH)]


def test_only_the_newest_text_of_a_job_counts(script, github):
    github.leave(packed(text="an old one"))
    github.leave(packed(text="a new one"))
    assert script.main(["5"]) == 0
    assert "new" in github.posted[0][2]
    assert "old" not in github.posted[0][2]


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "success"])
def test_a_run_without_a_text_is_red(script, github, conclusion):
    """A run that broke before it wrote anything replaces the old comment, whatever it calls itself."""
    github.run["conclusion"] = conclusion
    github.pulls[8] = pull(8, sha=OTHER)
    github.comments = b"31\n"
    assert script.main(["5"]) == 0
    ((_, _, body),) = github.posted
    assert body.splitlines()[1].startswith(f"❌ The gate of `aaaaaaaaaa` ended: **{conclusion}**")
    assert "❌ The run left no text" in body


def test_a_job_without_a_text_is_red(script, github):
    """An empty text beside a full one does not go unseen, even of a run that succeeded."""
    github.leave()
    github.leave(packed(text=""), "comment-python-3.11")
    assert script.main(["5"]) == 0
    assert "❌ The gate" in github.posted[0][2]
    assert "### `python 3.11`\n\n❌ This job left no text" in github.posted[0][2]


REFUSED = {
    "no number": packed(number=None),
    "no text": packed(text=None),
    "a word": packed(number="7; rm -rf /"),
    "a path": packed(number="../7"),
    "nought": packed(number="0"),
    "other digits": packed(number="٧"),
    "long number": packed(number="7" * 11),
    "two numbers": packed(number="7\n8\n"),
    "no zip": b"PK but not really",
    "a bomb": packed(text="0" * 500_000),
    "no text at all": packed(text=b"\xff\xfe"),
    "damaged in another way": damaged(),
}


def red(github, *numbers):
    """Whether these pull requests have a comment in the place of a refused text: GitHub's word, nothing of the run's."""
    bodies = [body for _, _, body in github.posted]
    paths = [path for path, _, _ in github.posted] == [f"/issues/{number}/comments" for number in numbers]
    return paths and all(body.startswith("<!-- jaxgate -->\n❌ The gate") and "was refused" in body for body in bodies)


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_refuses_what_the_gate_does_not_write(script, github, capsys, content):
    """One line says what is wrong, and the comment of an earlier run does not stand, in green."""
    github.leave(content)
    assert script.main(["5"]) == 1
    assert red(github, 7)
    assert capsys.readouterr().err.startswith("post_comment: expected ")


def test_refuses_a_large_artifact_before_it_is_fetched(script, github, capsys):
    github.leave(b"", size=400_001)
    assert script.main(["5"]) == 1
    assert "expected 400,000 bytes at most in comment-python-3.12, found 400,001" in capsys.readouterr().err


@pytest.mark.parametrize("where", [pull(name="o/p"), pull(ref="main"), pull(name=None), pull(name="o/p", sha=OTHER)])
def test_refuses_another_branch_of_the_same_number(script, github, where):
    """A run cannot comment on somebody else's pull request by leaving its number."""
    github.pulls[7] = where
    github.leave()
    assert script.main(["5"]) == 1
    assert github.posted == []


def test_refuses_texts_for_several_pull_requests(script, github):
    """One run is of one; both have its commit at their head, and both are told."""
    github.pulls[8] = pull(8)
    github.leave()
    github.leave(packed(number="8"), "comment-python-3.11")
    assert script.main(["5"]) == 1
    assert red(github, 7, 8)


def test_refuses_a_crowd_of_texts(script, github):
    for number in range(9):
        github.leave(name=f"comment-{number}")
    assert script.main(["5"]) == 1
    assert red(github, 7)


def test_a_pull_request_that_moved_on_is_left_to_its_newer_run(script, github, capsys):
    """The head is not this run's commit any more: nothing is posted, and that is no fault."""
    github.pulls[7] = pull(sha=OTHER)
    github.leave()
    assert script.main(["5"]) == 0
    assert github.posted == []
    assert "#7 has moved on" in capsys.readouterr().out


@pytest.mark.parametrize(("key", "value"), [("event", "push"), ("conclusion", None)])
def test_other_runs_are_left_alone(script, github, key, value):
    """A push has no pull request; a run that goes on again will come back."""
    github.leave()
    github.run[key] = value
    assert script.main(["5"]) == 0
    assert github.posted == []


@pytest.mark.parametrize("arguments", [[], ["5; x"], ["5", "6"], ["../5"]])
def test_refuses_other_arguments(script, github, arguments):
    assert script.main(arguments) == 1


def test_needs_nothing_installed():
    """The workflow installs nothing: the program starts with the standard library alone."""
    done = subprocess.run([sys.executable, "-I", "-S", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "post_comment: expected the id of a run, and GITHUB_REPOSITORY\n")


def test_a_long_text_is_cut(script, github):
    for line in ("3.11", "3.12"):
        github.leave(packed(text="## fine\n\n" + "word word\n\n" * 6000), f"comment-python-{line}")
    assert script.main(["5"]) == 0
    assert 50_000 < len(github.posted[0][2]) < 65_536


HOSTILE = {
    "a bot's command": "@dependabot merge",
    "a team": "hello @org/everyone and @user",
    "commands of one line": "/approve\n/lgtm\n  /hold cancel\n!merge\nrecheck\nLGTM\nbors r+",
    "a remote picture": "![x](https://evil.example/t.png)",
    "a picture in HTML": "<img src=https://evil.example/t.png onerror=x>",
    "an open fold": "<details open><summary>all is well</summary>",
    "the end of the block": "</pre></details>\n\n# ✅ approved\n\n@org/everyone",
    "the end of the block in other letters": "</PRE >\n\n@org/everyone",
    "fences": "```\n@a\n````\n@b\n~~~~~\n@c\n" + "`" * 40 + "\n@d\n" + "~" * 40,
    "a reference link": "[x]: https://evil.example\n\n[x] [y][x]",
    "bare links": "https://evil.example www.evil.example <https://evil.example> me@evil.example",
    "references": f"#123 org/repo#1 GH-7 {'a' * 40} fixes #1",
    "a mark": "<!-- jaxgate -->\n✅ all is well <!--",
    "turned around": "\u202egreen\u2066 \u200b@\u200duser \ufeff \u00ad \U000e0041",
    "controls": "a\x00b\x1b[2J\rc\x9b\ud800",
    "entities": "&lt;img src=x&gt; &#64;org/everyone &commat;user",
    "a table": "| a | b |\n|---|---|\n| @org/everyone \\| | ![x](https://evil.example) |",
    "mathematics and emoji": "$`x`$ $$\\unicode{x}$$ :tada:",
    "underlined": "all is well\n===========\n\n> **note**\n- [x] done",
    "an indented block": "    /approve\n\t@user",
}
PLACES = {
    "alone": "{}",
    "below a headline": "## ✅ jaxgate: 1 case passed\n\n{}",
    "in a cell": "| verdict | case |\n|---|---|\n| ❌ REGRESSED | `{}` |",
    "in a fence": "ok\n\n<details><summary>x</summary>\n\n```text\n{}\n```\n\n</details>",
    "in a title": "ok\n\n<details><summary>❌ <code>{}</code></summary>\n\nbody\n\n</details>",
}
BLOCK = re.compile("<pre>(.*?)</pre>", re.DOTALL)
INERT = re.compile(r"[^\S\n]*(?:&#\d+;(?:[\w \t]|&#\d+;)*)?")
"""A line: what begins it is a number, and all else is letters, digits, spaces and numbers."""


def posted(script, text):
    """The comment that carries a text."""
    run = {"conclusion": "failure", "head_sha": SHA, "html_url": "URL"}
    return script.page(run, [("python 3.12", text)])


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_text_of_strangers_only_shows_itself(script, text, place):
    """Around it is what is around any text, in it are letters and numbers; Markdown makes one link of all, to the run."""
    body, harmless = posted(script, place.format(text)), posted(script, place.format("word"))
    body.encode()
    assert len(body) < 65_536
    assert BLOCK.sub("", body) == BLOCK.sub("", harmless)
    lines = [line for block in BLOCK.findall(body) for line in block.split("\n")]
    assert [line for line in lines if not INERT.fullmatch(line) or (not line.isprintable() and "\t" not in line)] == []
    page = MarkdownIt("commonmark").enable("table").render(body)
    assert set(re.findall("<(?!!--)/?([a-z0-9]+)", page)) <= {
        "p", "strong", "a", "h3", "code", "pre", "details",
        "summary",
    }  # fmt: skip
    assert re.findall('(?:href|src)="(.*?)"', page) == ["URL"]


@pytest.mark.parametrize("name", ["a bot's command", "a remote picture", "a picture in HTML", "references"])
def test_a_text_of_strangers_is_read_as_it_was_left(script, name):
    (block,) = BLOCK.findall(posted(script, HOSTILE[name]))
    assert html.unescape(block) == HOSTILE[name]


@pytest.mark.parametrize("character", ["a", "@", "\n", "`", "|", "<details>", "\u202e", "😀"])
def test_a_text_without_an_end_is_cut(script, character):
    """GitHub takes 65,536 characters, whatever becomes of each."""
    for text in (character * 100_000, f"## ❌ red\n\n{(character * 50 + chr(10)) * 2000}"):
        assert len(posted(script, text)) < 65_536
    if character not in ("\n", "`", "|", "<details>"):  # of which our own Markdown is made
        assert "cut here" in posted(script, f"## ❌ red\n\n{(character * 50 + chr(10)) * 2000}")


def test_the_verdicts_come_first_and_the_rest_is_folded_away(script):
    """A page of the gate, without its Markdown: headline and columns, then what failed."""
    page = (
        "## ❌ jaxgate: 1 of 2 cases failed\n\n| verdict | case | now |\n|---|---|--:|\n| ❌ REGRESSED | `model/wave` | 1 kB |\n"
        "| ✅ SAME | `a` | 2 kB |\n\n- ❌ an&#95;orphan\n\n<details><summary>❌ <code>model/wave</code></summary>\n\n"
        "````text\nREGRESSED  **kw\n  @ `x`\n````\n\n</details>\n"
    )
    seen, folded = map(html.unescape, BLOCK.findall(posted(script, page)))
    assert seen.splitlines() == [
        "❌ jaxgate: 1 of 2 cases failed",
        "",
        "verdict      case        now",
        "❌ REGRESSED  model/wave  1 kB",
        "✅ SAME       a           2 kB",
        "",
        "- ❌ an_orphan",
    ]
    assert folded.splitlines() == ["❌ model/wave", "", "REGRESSED  **kw", "  @ `x`"]


def test_gh_is_called_and_its_failure_told(script, tmp_path, monkeypatch, capsys):
    """The real call, with a ``gh`` that fails: one line, and red."""
    (tmp_path / "gh").write_text("#!/bin/sh\necho 'HTTP 404: Not Found' >&2\necho more >&2\nexit 1\n")
    (tmp_path / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/p")
    assert script.main(["5"]) == 1
    expected = "post_comment: GitHub did not answer repos/o/p/actions/runs/5: HTTP 404: Not Found\n"
    assert capsys.readouterr().err == expected
