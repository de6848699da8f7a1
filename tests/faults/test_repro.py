"""Reproduction files of planted mistakes run where there is nothing but jax and NumPy, and show what was planted."""

import base64
import json
import os
import re
import zlib

import pytest
from support.corpora import EVERY
from support.processes import python
from support.stablehlo import readable

from tests.faults.repro import REPRODUCED, reproduced

pytestmark = pytest.mark.skipif(
    not os.environ.get(EVERY), reason=f"tests/cli/test_repro.py tries one; all with {EVERY}=1"
)
BARE = """
import os
import sys
from importlib.machinery import PathFinder
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
NAMES = {*sys.stdlib_module_names, "jax", "jaxlib", "numpy", "ml_dtypes", "opt_einsum", "scipy"}
class Few:
    def find_spec(self, name, path=None, target=None):
        known = name.partition(".")[0] in NAMES or name.startswith("_sysconfigdata")
        return PathFinder.find_spec(name, path, target) if known else None
sys.meta_path[:] = [Few() if one is PathFinder else one for one in sys.meta_path if "editable" not in str(one)]
for file in sys.argv[1:]:
    print("FILE", file, flush=True)
    exec(compile(open(file).read(), file, "exec"), {"__name__": "__main__"})
"""
"""Runs files one after the other without any package but those that jax itself needs."""
FACTS = {"argument bytes": "argument_bytes", "output bytes": "output_bytes", "alias bytes": "aliased_bytes"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the files and the facts that were observed."""
    folder = tmp_path_factory.mktemp("made")
    python("-m", "tests.faults.repro", folder)
    return folder


@pytest.fixture(scope="module")
def printed(made, tmp_path_factory):
    """What each file prints, all in one process that has eight devices: programs for one take the first."""
    folder = tmp_path_factory.mktemp("stranger")
    runner = folder / "bare.py"
    runner.write_text(BARE)
    for fault in reproduced():
        text = (made / f"{fault}.py").read_text()
        (folder / f"{fault}.py").write_text(text.replace("1, 40, 4.0", "1, 3, 0.0"))
    out = python("-I", runner, *[folder / f"{fault}.py" for fault in reproduced()])
    return dict(zip(REPRODUCED, out.split("FILE ")[1:], strict=True))


def row(text, name):
    """Both numbers of a row."""
    found = re.search(rf"^{name} +([\d,]+) +([\d,]+)", text, re.MULTILINE)
    assert found, f"no row {name} in {text}"
    return tuple(int(number.replace(",", "")) for number in found.groups())


@pytest.mark.parametrize("fault", reproduced(), ids=str)
def test_a_file_shows_what_was_planted(made, printed, fault):
    """Its row says another number for today's program; bytes are those that were observed, temporary ones nearly."""
    theirs, ours = row(printed[fault.name], REPRODUCED[fault.name])
    assert theirs != ours
    observed = json.loads((made / f"{fault}.json").read_text())
    for name, fact in FACTS.items():
        assert row(printed[fault.name], name) == tuple(side[fact] for side in observed)
    # An exported program may be scheduled otherwise: that of the blocks has 180,472 bytes for the 188,536 of its function.
    assert row(printed[fault.name], "temp bytes") == pytest.approx([side["temp_bytes"] for side in observed], rel=0.1)


@pytest.mark.parametrize("fault", reproduced(), ids=str)
def test_a_file_is_short_and_says_nothing_of_its_author(made, fault):
    """Beside the programs it has under a hundred lines; decoded, neither a path nor a function of the project is in it."""
    text = (made / f"{fault}.py").read_text()
    payloads = re.findall(r'payload="""(.*?)"""', text, re.DOTALL)
    assert len(payloads) == 2
    beside = re.sub(r"^(BASELINE|NOW) = Side\(.*?^\)$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert len(beside.splitlines()) < 100
    for payload in payloads:
        raw = zlib.decompress(base64.b85decode("".join(payload.split())))
        decoded = readable(raw)
        assert set(re.findall(r"@(\w+)", decoded)) <= {
            "main",
            "program",
            *re.findall(r"@(f\d+|(?:empty_)?mesh\w*|lapack_\w+)", decoded),
        }
        for word in (".py", fault.case, "planted", "jit_", "result_info", "/home", "/tmp", '"data"', '"model"'):
            assert word not in decoded, word
            assert word.encode() not in raw, word
