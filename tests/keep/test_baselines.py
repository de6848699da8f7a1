"""Baselines on disk: what is written comes back, what cannot be trusted is refused by file and key."""

import copy
import json
from dataclasses import fields

import pytest
from support.factories import CASE, HARDWARE, LINE, OTHER_CPU, baseline

from jaxgate.keep.baselines import BaselineStore, read_baseline, recorded_by, save_baseline
from jaxgate.keep.strict import CorruptBaselineError, write_strict
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Leaf
from jaxgate.model.numbers import Facts, Phases

GPU = HardwareKey(platform="gpu", device_kind="NVIDIA H200", devices=1)
TWO_CPUS = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=2)
OWN_FILE = "cpu-amd-epyc-1-jax-0.10/scan/rnn.json"

# The file of ``factories.baseline()``, written by hand.
IN_PLACE = {"arrival": "device array", "sent_bytes": 0, "value": None}
CONTENT = {
    "called": {}, "case": "scan/rnn", "collectives": {},
    "environment": {"jax": "0.10.2", "jaxlib": "0.10.2", "python": "3.11"},
    "facts": {
        "aliased_bytes": 16384, "argument_bytes": 18432, "block_bytes": 0, "code_bytes": 10000, "collective_bytes": 0,
        "collectives": 0, "compiles": 1, "constant_bytes": 0, "donated_bytes": 16384, "host_callbacks": 0,
        "host_reads": 1, "host_waits": 1, "copied_bytes": 4096, "cyclic_arrays": 0, "cyclic_objects": 0,
        "host_transfers": 1, "kernels": 12, "jax_calls": 0, "jitted": 1, "kept_arrays": 0, "loop_turns": 0,
        "largest_batch": 512, "launches": 3, "lost_bytes": 0, "lowerings": 1, "matmul_flops": 1000000,
        "output_bytes": 16388, "random_bits": 0, "remade_jits": 0, "replicated_bytes": 0, "unmatched_names": 0,
        "python_calls": 40, "sampled_compiles": 0, "scattered_bytes": 0, "sampled_traces": 0, "stablehlo_ops": 40,
        "trace_calls": 2000, "trace_equations": 12, "temp_bytes": 20000, "transcendentals": 1000, "traces": 1,
        "widened_bytes": 0, "xla_bytes": 100000, "xla_flops": 1100000,
    },
    "fingerprints": {
        "devices": None, "executable": None, "inputs": "i0", "options": "", "program": "0" * 32, "source": "s0",
    },
    "hardware": {"device_kind": "AMD EPYC", "devices": 1, "platform": "cpu"}, "eager": False, "first": {},
    "kernels": {}, "later": {}, "launched": {}, "matmuls": {"float32[8,64] x float32[64,64]": 3},
    "launched_programs": [], "growth": {}, "libraries": {}, "native_code": {},
    "operations": {"stablehlo.add 8x64xf32": 37, "stablehlo.dot_general 8x64xf32": 3},
    "phases": {
        "compile_ns": 50000000, "dispatch_ns": None, "trace_wait_ns": None, "first_call_ns": 1000000, "host_ns": None,
        "lower_ns": 5000000, "trace_ns": 10000000, "yardstick_ns": None,
    },
    "program": {"digest": "0" * 64, "donated": [0], "feeds": [0, None], "options": {}, "why_not": ""},
    "provenance": {"commit": "0123456789abcdef", "date": "2026-11-20", "dirty": False, "jaxgate": "0.1.0"},
    "results": [], "samples": {"bursts_ns": [2000, 2200, 1900], "calls_per_burst": 2, "contract": "throughput"},
    "schema": 5,
    "signature": [
        {**IN_PLACE, "aval": "float32[64,64]", "donated": True, "nbytes": 16384, "path": "state['w']"},
        {**IN_PLACE, "aval": "float32[8,64]", "donated": False, "nbytes": 2048, "path": "batch"},
    ],
    "steps": 0, "test": "perf/test_scan.py::test_scan[rnn]", "traced": {}, "transferred": {}, "turns": {},
    "widened": {},
}  # fmt: skip
FREE = (
    "called", "collectives", "environment", "first", "later", "launched", "matmuls", "growth", "libraries",
    "native_code", "operations", "options", "transferred", "turns", "widened",
)  # their keys are data  # fmt: skip


def keys(content=CONTENT, place=()):
    """Every key that the schema asks for, as a path into the content."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        if isinstance(content, dict):
            yield (*place, key)
        if isinstance(value, (dict, list)) and key not in FREE:
            yield from keys(value, (*place, key))


KEYS = [place for place in keys() if place[-1] not in {*range(9), *IN_PLACE} and place != ("schema",)]
LATER = {
    ("called",): {}, ("launched_programs",): (), ("growth",): {}, ("libraries",): {}, ("native_code",): {},
    ("transferred",): {}, ("turns",): {}, ("kernels",): {}, ("traced",): {}, ("first",): {}, ("later",): {},
    ("steps",): 0,
    **{
        ("facts", name): None
        for name in (
            "block_bytes", "copied_bytes", "cyclic_arrays", "cyclic_objects", "host_reads", "host_waits",
            "jax_calls", "jitted", "kept_arrays", "kernels", "loop_turns", "python_calls", "random_bits",
            "remade_jits", "replicated_bytes", "scattered_bytes", "trace_calls", "trace_equations",
            "transcendentals", "unmatched_names",
        )
    },
}  # fmt: skip
LATER |= {
    ("phases", "dispatch_ns"): None, ("phases", "trace_wait_ns"): None, ("fingerprints", "devices"): None,
    ("fingerprints", "executable"): None,
}  # fmt: skip
"""Keys that came after files of this schema, and what is read where they are not there."""


def dotted(place):
    """A path as errors print it."""
    return ".".join(map(str, place))


def changed(place, value=None, *, remove=False):
    """The content with one key set or removed."""
    content = copy.deepcopy(CONTENT)
    inside = content
    for key in place[:-1]:
        inside = inside[key]
    if remove:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return content


@pytest.fixture
def store(tmp_path):
    """A store without files."""
    return BaselineStore(tmp_path / "baselines", LINE)


def put(store, content, file=OWN_FILE):
    """Write a file of the store by hand: bytes as they are, anything else as JSON."""
    path = store.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refusal(store, content, file=OWN_FILE):
    """Why a file is refused; the error must name it, in a line that a person can read."""
    path = put(store, content, file)
    with pytest.raises(CorruptBaselineError) as caught:
        store.load(HARDWARE, CASE)
    assert caught.value.path == path
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    assert len(caught.value.reason) < 400
    return caught.value.reason


EXPLAINS = {
    "results": (Leaf(path="result['w']", aval="float32[64,64]", nbytes=16384, donated=False),),
    "collectives": {"all_reduce float32[64,64] over data": 2},
    "widened": {"bfloat16[8,64] to float32": 4},
    "launched": {"jit_step": 1},
    "transferred": {"the host": 2},
    "called": {"model.Config.__hash__": 1},
    "eager": True,
}


@pytest.mark.parametrize("changes", [{}, EXPLAINS], ids=["as usual", "with what explains a difference"])
def test_what_is_saved_comes_back(store, changes):
    """A baseline survives the way through its file, every field of it."""
    for case in (CASE, "donation/train-step.v2"):
        told = baseline(case=case, **changes)
        path = save_baseline(store.root, told)
        record = store.load(HARDWARE, case)
        assert (record.baseline, record.path, record.borrowed) == (told, path, False)
        assert path == (store.root / OWN_FILE).parents[1] / f"{case}.json"
        assert read_baseline(path) == told


def test_a_list_of_numbers_is_one_line(tmp_path):
    content = {
        "bursts": [1, -2.5e-07, 3],
        "none": [],
        "texts": ["[\n 1\n]", "2"],
        "pairs": [[1, 2], [3]],
        "known": [None, 1],
    }
    write_strict(tmp_path / "file.json", content)
    text = (tmp_path / "file.json").read_text()
    assert json.loads(text) == content
    assert ' "bursts": [1, -2.5e-07, 3],\n' in text
    assert "  [1, 2],\n  [3]\n" in text


def test_the_file_says_what_the_schema_says(store):
    """One case per file, with these keys, these values and units in the names."""
    assert json.loads(save_baseline(store.root, baseline()).read_text()) == CONTENT
    assert set(CONTENT["facts"]) == {field.name for field in fields(Facts)}
    assert set(CONTENT["phases"]) == {field.name for field in fields(Phases)}


NULLABLE = [("facts", name) for name in CONTENT["facts"]] + [("phases", name) for name in CONTENT["phases"]]
NULLABLE += [("fingerprints", name) for name in ("source", "options", "executable", "devices")]
NULLABLE += [("provenance", "commit"), ("samples",)]
UNKNOWN = {f"{dotted(place)} is null": (place, changed(place, None), None) for place in NULLABLE}
UNKNOWN |= {f"before {dotted(place)}": (place, changed(place, remove=True), LATER[place]) for place in LATER}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_may_be_unknown_is_read(store, what):
    """Null is a value of what a backend does not tell, or no clock; what came later is unknown of a file from before it."""
    place, content, value = UNKNOWN[what]
    put(store, content)
    found = store.load(HARDWARE, CASE).baseline
    for name in place:
        found = getattr(found, name)
    assert found == value


TEXT = json.dumps(CONTENT, indent=1).encode()


CONFLICT = b'{\n<<<<<<< ours\n "schema": 3\n=======\n "schema": 2\n>>>>>>> theirs\n}'
DAMAGED = {
    "is not JSON (truncated or merged badly?)": (TEXT[: len(TEXT) // 2], TEXT[:-1], b"", TEXT + b"}", CONFLICT),
    "cannot be read": (b"\xff\xfe\xfa", TEXT.replace(b"AMD", b"\xe4")),
    "": (b"[" * 100_000, TEXT.replace(b"20000", b"9" * 5000), TEXT.replace(b"AMD", rb"\ud800")),
    "expected a JSON object": ([CONTENT], b"null", b"1"),
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_what_is_not_a_json_object_is_refused(store, reason):
    """Cut, merged badly, in another encoding, nested deeply, of huge numbers, or something else: the error names the file."""
    for content in DAMAGED[reason]:
        assert refusal(store, content).startswith(reason)


def test_another_schema_is_refused(store):
    """An older, newer, mistyped or missing schema is not guessed at."""
    for other in (1, 2, 3, 6, None, "5", True):
        assert refusal(store, changed(("schema",), other)) == f"expected schema 5, found {other!r}"
    assert refusal(store, changed(("schema",), 5.0)).startswith("key `schema`")
    assert refusal(store, changed(("schema",), remove=True)) == "expected schema 5, found None"


def test_a_key_that_stands_twice_is_refused(store):
    """A merge that kept both sides of a line must not be settled by the order of lines."""
    for key, line in (("traces", '"traces": 1'), ("case", '"case": "scan/rnn"'), ("source", '"source": "s0"')):
        twice = TEXT.decode().replace(line, f'"{key}": null, {line}')
        assert twice.count(f'"{key}":') == 2
        assert f"`{key}`" in refusal(store, twice.encode())


@pytest.mark.parametrize("place", [place for place in KEYS if place not in LATER], ids=dotted)
def test_a_missing_key_is_refused(store, place):
    """A lost key is an error that names it, also where the dataclass has a default."""
    assert refusal(store, changed(place, remove=True)) == f"key `{dotted(place)}` is missing"


def test_how_arguments_arrive_may_be_unknown(store):
    """A baseline that was recorded before it was looked at has neither key; one alone is a merge that lost the other."""
    older = changed(
        ("signature",), [{k: v for k, v in leaf.items() if k not in IN_PLACE} for leaf in CONTENT["signature"]]
    )
    put(store, older)
    loaded = store.load(HARDWARE, CASE).baseline
    assert [(leaf.arrival, leaf.sent_bytes) for leaf in loaded.signature] == [(None, None)] * 2
    assert (loaded.sent_bytes, loaded.moved_arrays) == (None, None)
    for key in ("arrival", "sent_bytes"):
        assert "expected arrival and sent_bytes" in refusal(store, changed(("signature", 1, key), remove=True))


LEVELS = [(), ("signature", 1), *((key,) for key in ("facts", "phases", "samples", "hardware", "fingerprints"))]
LEVELS += [("provenance",)]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: dotted(level) or "top")
def test_an_unknown_key_is_refused(store, level):
    """A key that nobody reads is an error that names it, at every level."""
    assert refusal(store, changed((*level, "tmp_bytes"), 1)) == f"unknown key `{dotted((*level, 'tmp_bytes'))}`"


WRONG = {
    ("facts", "temp_bytes"): (20000.0, "20000", True, [20000], float("nan"), float("inf")),
    ("facts",): ([],),
    ("phases", "compile_ns"): (1.5, "50000000", False),
    ("samples", "bursts_ns", 0): (2000.0, "2000", True, None, float("nan")),
    ("samples", "bursts_ns"): (None, 2000, "2000"),
    ("samples",): ([], 2000, "none"),
    ("provenance", "dirty"): (0, "false", None),
    ("provenance", "date"): (20261120, None),
    ("signature", 0, "donated"): (1, "true", None),
    ("signature", 0, "arrival"): (0, ["device array"]),
    ("signature", 0): (None, ["state", "float32[64,64]", 16384, True]),
    ("signature",): ({}, "batch"),
    ("eager",): (0, "false", None),
    ("hardware", "devices"): (1.0, "1", None),
    ("fingerprints", "program"): (0, None),
    ("environment", "jax"): (10, None),
    ("operations", "stablehlo.add 8x64xf32"): (37.0, "37", True, None),
    **{(key,): (None,) for key in ("case", "test", "hardware", "provenance", "environment", "phases", "results")},
    **{(key,): (None, []) for key in ("called", "collectives", "libraries", "widened", "launched")},
    ("samples", "calls_per_burst"): (2.0, "2", True, None),
}


@pytest.mark.parametrize(
    ("place", "value"),
    [(place, value) for place, values in WRONG.items() for value in values],
    ids=lambda part: dotted(part) if isinstance(part, tuple) else repr(part),
)
def test_a_wrong_type_is_refused(store, place, value):
    """Nothing is converted: a value of another type is an error that names key and value."""
    reason = refusal(store, changed(place, value))
    assert reason.startswith(f"key `{dotted(place)}`")
    assert reason.endswith(f"found {value!r}")


IMPOSSIBLE = [("bursts_ns", []), ("bursts_ns", [2000, -5]), ("calls_per_burst", 0), ("calls_per_burst", -2)]


@pytest.mark.parametrize(("key", "value"), IMPOSSIBLE)
def test_samples_that_cannot_be_are_refused(store, key, value):
    """A baseline without usable samples is never green: it has no time of a call."""
    assert "samples" in refusal(store, changed(("samples", key), value))


def test_a_copy_of_another_case_is_refused(store):
    """Where the one that it speaks of has its own file, it is not the baseline of its new name."""
    put(store, CONTENT)
    other = store.path(HARDWARE, "scan/lstm")
    other.write_bytes(TEXT)
    for read in (lambda: store.load(HARDWARE, "scan/lstm"), lambda: read_baseline(other)):
        with pytest.raises(CorruptBaselineError) as error:
            read()
        assert error.value.reason == (
            "expected the case `scan/lstm`, found `scan/rnn`, which has a file of its own: was it copied? Record it: "
            "--perf-update"
        )


def test_a_file_that_was_moved_is_that_of_its_new_name(store):
    """``git mv`` is how a renamed test keeps its baseline; whose test it is is not known until it is recorded again."""
    put(store, changed(("case",), "scan/lstm"))
    for found in (store.load(HARDWARE, CASE).baseline, read_baseline(store.root / OWN_FILE)):
        assert (found.case, found.test) == (CASE, "")
    assert recorded_by(store.root, CASE) == set()


@pytest.mark.parametrize("name", ["../scan/rnn", "scan", "a/b/c", "../../x"])
def test_what_a_file_says_leads_nowhere_else(store, name):
    """A name that is no case's is no file that was moved."""
    assert refusal(store, changed(("case",), name)).startswith("expected the case `scan/rnn`, found")


@pytest.mark.parametrize(
    ("place", "value", "folder"),
    [
        (("hardware", "device_kind"), "Intel Xeon", "cpu-intel-xeon-1-jax-0.10"),
        (("hardware", "platform"), "gpu", "gpu-amd-epyc-1-jax-0.10"),
        (("hardware", "devices"), 8, "cpu-amd-epyc-8-jax-0.10"),
        (("environment", "jax"), "0.9.1", "cpu-amd-epyc-1-jax-0.9"),
    ],
)
def test_a_file_in_a_wrong_folder_is_refused(store, place, value, folder):
    """It is not this machine's baseline; a folder copied to start a new line would let an old program pass for a new one."""
    found = "cpu-amd-epyc-1-jax-0.10"
    assert refusal(store, changed(place, value)) == f"expected it in the folder `{folder}`, found it in `{found}`"


def test_a_file_of_the_same_platform_is_borrowed(store):
    """Of those recorded on the same platform with as many devices the first by name, if this hardware has none; it says so."""
    for kind in ("Intel Xeon", "AAA", "Zen"):
        save_baseline(store.root, baseline(hardware=HardwareKey(platform="cpu", device_kind=kind, devices=1)))
    save_baseline(store.root, baseline(hardware=TWO_CPUS))
    record = store.load(HARDWARE, CASE)
    assert (record.borrowed, record.path) == (True, store.root / "cpu-aaa-1-jax-0.10/scan/rnn.json")
    save_baseline(store.root, baseline())
    assert (store.load(HARDWARE, CASE).baseline, store.load(HARDWARE, CASE).borrowed) == (baseline(), False)


def of_line(version, **changes):
    """A baseline that another jax recorded."""
    return baseline(environment={**CONTENT["environment"], "jax": version}, **changes)


@pytest.mark.parametrize(
    ("stored", "taken"),
    [
        (["0.9.1", "0.10.0", "0.12.0"], "0.10.0"),
        (["0.8.3", "0.9.1", "0.11.0"], "0.9.1"),
        (["0.11.0", "0.12.0"], "0.11.0"),
        (["0.100.0"], "0.100.0"),
    ],
    ids=["its own", "the newest that is older", "else the oldest that is newer", "however far"],
)
def test_the_nearest_release_line_is_taken(store, stored, taken):
    """Of this hardware; one of another line is not what a recording here would replace."""
    for version in stored:
        save_baseline(store.root, of_line(version))
    record = store.load(HARDWARE, CASE)
    assert record.baseline.environment["jax"] == taken
    assert record.own == (taken == "0.10.0")
    assert (record.borrowed, record.of_other_line) == (False, taken != "0.10.0")


def test_the_own_line_of_other_hardware_is_nearer_than_another_line(store):
    """A line of jax writes one program on all hardware of a platform; two lines rarely do."""
    save_baseline(store.root, of_line("0.9.1"))
    save_baseline(store.root, of_line("0.10.0", hardware=OTHER_CPU))
    record = store.load(HARDWARE, CASE)
    assert (record.baseline.hardware, record.borrowed, record.of_other_line) == (OTHER_CPU, True, False)
    save_baseline(store.root, of_line("0.9.0", hardware=OTHER_CPU))
    (store.root / "cpu-intel-xeon-1-jax-0.10/scan/rnn.json").unlink()
    assert store.load(HARDWARE, CASE).baseline.hardware == HARDWARE


def test_a_baseline_that_names_no_jax_is_refused(store):
    for content in (changed(("environment", "jax"), remove=True), changed(("environment", "jax"), "unknown")):
        assert refusal(store, content).startswith("key `environment.jax`: expected a version of jax")


def test_what_may_be_borrowed_is_read_as_strictly(store):
    """A file that cannot be read is no reason to take the next one; one in a wrong folder does not say where it was recorded."""
    save_baseline(store.root, baseline(hardware=HardwareKey(platform="cpu", device_kind="Zen", devices=1)))
    assert refusal(store, b"{", "cpu-intel-xeon-1-jax-0.10/scan/rnn.json").startswith("is not JSON")
    (store.root / "cpu-intel-xeon-1-jax-0.10/scan/rnn.json").unlink()
    wrong = "cpu-amd-1-jax-0.10/scan/rnn.json"
    assert refusal(store, CONTENT, wrong).startswith("expected it in the folder")
    with pytest.raises(CorruptBaselineError, match="expected it in the folder"):
        read_baseline(store.root / wrong)


@pytest.mark.parametrize("other", [GPU, TWO_CPUS], ids=["other platform", "other number of devices"])
def test_what_cannot_be_compared_is_not_borrowed(store, other):
    """Another platform or another number of devices compiles other programs; it is named, not used."""
    save_baseline(store.root, baseline(hardware=other))
    assert store.load(HARDWARE, CASE) is None
    assert store.elsewhere(HARDWARE, CASE) == (other.slug,)
    assert store.elsewhere(other, CASE) == ()


def test_elsewhere_names_all_other_hardware(store):
    """All folders that hold the case are named in order, neither this machine's nor those of other cases."""
    for hardware in (HARDWARE, OTHER_CPU, GPU):
        save_baseline(store.root, baseline(hardware=hardware))
    save_baseline(store.root, baseline(hardware=TWO_CPUS, case="scan/lstm"))
    (store.root / "README.md").write_text("# ours\n")
    assert store.elsewhere(HARDWARE, CASE) == ("cpu-intel-xeon-1", "gpu-nvidia-h200-1")
