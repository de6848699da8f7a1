"""The file of waivers is read strictly: what is not exactly as expected is one error with file, entry and key."""

from datetime import date

import pytest

from jaxgate.keep.waivers import WaiverError, read_drift_starts, read_waivers
from jaxgate.model.waiver import Waiver

ENTRY = """
[[waiver]]
case = "scan/rnn"
quantity = "temp_bytes"
up_to = 4200000
owner = "perf-team"
reason = "the fused kernel needs a scratch buffer until issue 12"
expires = 2026-12-31
"""
NAMED = "entry 1 (scan/rnn, temp_bytes): "


@pytest.fixture
def read(tmp_path):
    """Write a file of waivers and read it."""

    def write_and_read(text):
        (tmp_path / "waivers.toml").write_text(text, encoding="utf-8")
        return read_waivers(tmp_path)

    return write_and_read


def test_an_entry(read):
    """Every key arrives with its type; a whole number is a number."""
    assert read(ENTRY) == (
        Waiver(
            case="scan/rnn",
            quantity="temp_bytes",
            up_to=4_200_000.0,
            owner="perf-team",
            reason="the fused kernel needs a scratch buffer until issue 12",
            expires=date(2026, 12, 31),
        ),
    )


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("compile_ns ≤ 0.5 × reference", "compile_ns ≤ 0.5 × reference"),
        ("compile_ns<=0.5 * reference", "compile_ns ≤ 0.5 × reference"),
        ("donated_bytes >= 1", "donated_bytes ≥ 1"),
        ("time", "time"),
    ],
)
def test_claims_and_time_can_be_named(read, written, printed):
    """A claim's formula as it is printed, or as in its workload, and the word for time."""
    (waiver,) = read(ENTRY.replace("temp_bytes", written).replace("4200000", "1.2"))
    assert waiver.quantity == printed


def test_releases_can_be_named(read):
    (some,), (every,) = read(f'{ENTRY}jax = ">=0.12"'), read(ENTRY)
    assert [some.covers(jax) for jax in ("0.10.2", "0.12.0.1", "0.13.0.dev1")] == [False, True, True]
    assert every.covers("0.10.2")


def test_no_file_is_no_waiver(tmp_path, read):
    """Neither is an empty file, nor a project without baselines."""
    assert read_waivers(tmp_path / "baselines") == ()
    assert read("# nothing is waived\n") == ()


def without(key):
    """The entry without one of its lines."""
    return "".join(line for line in ENTRY.splitlines(keepends=True) if not line.startswith(f"{key} ="))


BAD = {
    **{
        f"no {key}": (without(key), f"key `{key}` is missing")
        for key in ("case", "quantity", "up_to", "owner", "reason", "expires")
    },
    "unknown key": (f"{ENTRY}hardware = 'cpu'\n", f"{NAMED}unknown key `hardware`"),
    "unknown table": (
        ENTRY.replace("waiver]]", "waivers]]"),
        "unknown key `waivers`; expected [[waiver]] and [[drift]] entries",
    ),
    "something beside": (f"schema = 1\n{ENTRY}", "unknown key `schema`"),
    "single brackets": (ENTRY.replace("[[waiver]]", "[waiver]"), "expected [[waiver]] entries, in double brackets"),
    "not tables": ("waiver = [1, 2]", "expected [[waiver]] entries"),
    "quoted date": (ENTRY.replace("2026-12-31", '"2026-12-31"'), f"{NAMED}key `expires`: Input should be a valid date"),
    "date with time": (ENTRY.replace("12-31", "12-31T00:00:00"), f"{NAMED}key `expires`: Input should be a valid date"),
    "no such day": (ENTRY.replace("12-31", "02-30"), "no such date, or merged badly?"),
    "no such day, shown": (ENTRY.replace("12-31", "02-30"), "expires = 2026-02-30"),
    "text for a number": (ENTRY.replace("4200000", '"4 MB"'), f"{NAMED}key `up_to`: Input should be a valid number"),
    "yes for a number": (ENTRY.replace("4200000", "true"), f"{NAMED}key `up_to`: Input should be a valid number"),
    "anything goes": (ENTRY.replace("4200000", "inf"), f"{NAMED}key `up_to`: expected a finite number, found inf"),
    "nan": (ENTRY.replace("4200000", "nan"), f"{NAMED}key `up_to`: expected a finite number, found nan"),
    "nobody": (ENTRY.replace("perf-team", " "), f"{NAMED}key `owner`: expected some words"),
    "no reason": (ENTRY.replace("the fused", '"#'), f"{NAMED}key `reason`: expected some words"),
    "no family": (ENTRY.replace("scan/rnn", "rnn"), "key `case`: expected family/sentence, found 'rnn'"),
    "no such fact": (ENTRY.replace("temp_bytes", "temp_byte"), "key `quantity`: expected a fact's name"),
    "a phase": (ENTRY.replace("temp_bytes", "compile_ns"), "key `quantity`: expected a fact's name"),
    "a ratio below one": (
        ENTRY.replace("temp_bytes", "time").replace("4200000", "0.2"),
        "entry 1 (scan/rnn, time): key `up_to`: expected a ratio to the baseline above 1, found 0.2",
    ),
    "twice": (ENTRY + ENTRY.replace("4200000", "9000000"), "entry 2 (scan/rnn, temp_bytes): keys `case` and"),
    "the second entry": (
        ENTRY + ENTRY.replace("temp_bytes", "xla_bytes").replace("2026-12-31", "1"),
        "entry 2 (scan/rnn, xla_bytes): key `expires`",
    ),
    "a key twice": (f"{ENTRY}up_to = 3\n", "is not TOML"),
    "no releases": (f'{ENTRY}jax = "new"', f"{NAMED}key `jax`: expected releases such as >=0.12, found 'new'"),
    "merge conflict": (f"<<<<<<< ours\n{ENTRY}", "is not TOML"),
}


@pytest.mark.parametrize("what", BAD)
def test_anything_else_is_one_clear_error(read, tmp_path, what):
    """One line that names the file, the entry where it is about one, and the key."""
    text, message = BAD[what]
    with pytest.raises(WaiverError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{tmp_path / 'waivers.toml'}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_encoding_is_no_absence(tmp_path):
    (tmp_path / "waivers.toml").write_bytes(ENTRY.encode("utf-16"))
    with pytest.raises(WaiverError, match="cannot be read"):
        read_waivers(tmp_path)


DRIFT = """
[[drift]]
case = "scan/rnn"
since = 2026-11-01
owner = "perf-team"
reason = "the new kernel is worth it, issue 31"
"""


def test_an_accepted_drift(tmp_path):
    """Beside a waiver, each read by its own; a later one of another case too."""
    (tmp_path / "waivers.toml").write_text(ENTRY + DRIFT + DRIFT.replace("scan/rnn", "scan/loop"), encoding="utf-8")
    assert [(one.case, one.since) for one in read_drift_starts(tmp_path)] == [
        ("scan/rnn", date(2026, 11, 1)),
        ("scan/loop", date(2026, 11, 1)),
    ]
    assert len(read_waivers(tmp_path)) == 1
    assert read_drift_starts(tmp_path / "nowhere") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DRIFT + DRIFT, "entry 2 (scan/rnn): key `case` is that of entry 1; keep one of them"),
        (DRIFT.replace("2026-11-01", '"2026-11-01"'), "a date stands without quotes"),
        (DRIFT.replace("owner", "owners"), "entry 1 (scan/rnn): "),
        (DRIFT.replace("perf-team", " "), "key `owner`: expected some words, found none"),
        (DRIFT.replace("scan/rnn", "rnn"), "key `case`: expected family/sentence, found 'rnn'"),
        (DRIFT.replace("[[drift]]", "[drift]"), "expected [[drift]] entries, in double brackets"),
    ],
)
def test_an_accepted_drift_is_read_strictly(tmp_path, text, message):
    (tmp_path / "waivers.toml").write_text(text, encoding="utf-8")
    with pytest.raises(WaiverError) as caught:
        read_drift_starts(tmp_path)
    assert message in str(caught.value)
