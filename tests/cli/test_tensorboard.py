"""``jaxgate tensorboard``: its links lead to the traces of both sides, in a real TensorBoard on this machine alone."""

import gzip
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import parse_qs, urlsplit

import jax
import jax.numpy as jnp
import pytest

from jaxgate.cli.main import main
from jaxgate.ext.profile.capture import session_name, take_profile
from jaxgate.ext.profile.command import deep_links
from jaxgate.ext.profile.programs import Profiled

CASE = "model/step"
PATIENCE_S = 90


def profile(folder, side, function):
    """Profile a side as a bundle has it."""
    jitted, x = jax.jit(function), jnp.ones((256, 64))
    profiled = Profiled(
        side=side, fresh=lambda: x, step=lambda x: jax.block_until_ready(jitted(x)), following=lambda x, _: x
    )
    assert not take_profile(profiled, folder / CASE / side, session_name(CASE, side)).why_not


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """The artifacts of a run with one profiled case."""
    folder = tmp_path_factory.mktemp("artifacts")
    profile(folder, "now", lambda x: jnp.sort(jnp.tanh(x), axis=0))
    profile(folder, "baseline", jnp.tanh)
    return folder


def get(address):
    """What a server answers, as text."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        content = answer.read()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()


def wait_for(address, wanted):
    """Ask until an answer holds what is wanted."""
    end = time.monotonic() + PATIENCE_S
    found = ""
    while time.monotonic() < end:
        try:
            found = get(address)
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            found = str(error)
        if all(word in found for word in wanted):
            return found
        time.sleep(0.5)
    raise AssertionError(f"{address} does not say {wanted}: {found[:500]}")


@pytest.fixture(scope="module")
def board(bundles):
    """A running TensorBoard; the links that were printed, by side."""
    command = [sys.executable, "-m", "jaxgate.cli.main", "tensorboard", "--logdir", str(bundles)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        links = {}
        for line in process.stdout:
            if line.startswith("TensorBoard: "):
                break
            if match := re.match(r"  (\w+) +(http://\S+)$", line):
                links[match[1]] = match[2]
        yield links
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.parametrize(("side", "operation"), [("now", "sort"), ("baseline", "tanh")])
def test_the_trace_viewer_answers_with_the_cases_own_operations(board, side, operation):
    """Both runs are there, with the tool that the link names, and its data hold what the case ran."""
    link = urlsplit(board[side])
    query = {name: values[0] for name, values in parse_qs(link.query).items()}
    server = f"http://{link.netloc}/data/plugin/profile"
    assert link.hostname == "127.0.0.1"
    assert link.fragment == "profile"
    runs = json.loads(wait_for(f"{server}/runs", [f"{CASE}/now/", f"{CASE}/baseline/"]))
    assert query["run"] in runs
    assert query["tag"] in json.loads(get(f"{server}/run_tools?run={query['run']}"))
    data = get(f"{server}/data?run={query['run']}&tag=trace_viewer@&host={query['host']}")
    names = {event.get("name", "") for event in json.loads(data)["traceEvents"]}
    assert any(name.startswith("jaxgate step") for name in names)
    assert any(operation in name for name in names)


def test_links_name_run_tool_and_host(bundles):
    found = deep_links(bundles)
    assert list(found) == [CASE]
    assert list(found[CASE]) == ["now", "baseline"]
    link = found[CASE]["baseline"]
    assert link.startswith(f"/?run={CASE}/baseline/model-step-baseline-p0&tag=trace_viewer@&host=")
    assert link.endswith("#profile")


def test_links_alone_start_nothing(bundles, capsys, monkeypatch):
    """For a script, or a TensorBoard that runs already."""
    monkeypatch.setitem(sys.modules, "xprof", None)  # nor is anything needed
    assert main(["tensorboard", "--logdir", str(bundles), "--links"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "http://127.0.0.1:6006/?run=" in lines[1]
    assert lines[0] == CASE
    assert [line.split()[0] for line in lines[1:]] == ["now", "baseline"]


def test_a_part_of_a_bundle_has_no_links(bundles, capsys):
    """The folder of one side names no case: nothing is shown, rather than a link to nowhere."""
    assert main(["tensorboard", "--logdir", str(bundles / CASE / "now"), "--links"]) == 1
    assert "found none" in capsys.readouterr().err


def test_without_a_profile_it_says_how_to_get_one(tmp_path, capsys):
    assert main(["tensorboard", "--logdir", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert f"expected profiles under {tmp_path}, found none" in told
    assert "--perf-profile=always" in told


def test_without_tensorboard_it_says_what_to_install(bundles, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "xprof", None)
    assert main(["tensorboard", "--logdir", str(bundles)]) == 2
    assert "jaxgate[tensorboard]" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused(bundles, capsys):
    """Where the user chose it; without a choice any free one is taken."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["tensorboard", "--logdir", str(bundles), "--port", str(port)]) == 2
    assert f"port {port} is taken" in capsys.readouterr().err
