"""The baselines of this repository: each comes with the program that it names."""

import json

import pytest
from support.paths import REPOSITORY

from jaxgate.keep.programs import ProgramStore

ROOT = REPOSITORY / "baselines"


@pytest.mark.parametrize(("platform", "at_least"), [("cpu", 320), ("tpu", 34), ("gpu", 25)])
def test_every_committed_baseline_has_its_program(platform, at_least):
    """Without it a changed case could not be duelled, and what another compiler makes of it would not be known."""
    store = ProgramStore(ROOT)
    stored = {(store.fingerprint_of(path), store.digest_of(path)) for path in store.files()}
    baselines = {path: json.loads(path.read_text()) for path in ROOT.glob(f"{platform}-*/*/*.json")}
    assert len(baselines) > at_least
    lost = [
        str(path.relative_to(ROOT))
        for path, found in baselines.items()
        if found["program"]["digest"] is not None
        and (found["fingerprints"]["program"], found["program"]["digest"]) not in stored
    ]
    assert lost == []


@pytest.mark.parametrize("line", ["0.10", "0.12"])
def test_each_family_has_laws_of_growth(line):
    """On both release lines, at the sizes that its cases ask for."""
    found = {path: json.loads(path.read_text()) for path in ROOT.glob(f"cpu-*-jax-{line}/*/*.json")}
    families = {path.parent.name for path in found}
    with_laws = {path.parent.name for path, baseline in found.items() if baseline.get("growth")}
    assert (len(families), families - with_laws) == (22, set())
