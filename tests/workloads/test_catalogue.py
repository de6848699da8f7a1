"""The catalogue as a whole: complete, explained, and imported without a device. No case is run."""

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys

import pytest
from support.paths import REPOSITORY

import workloads
from workloads.__main__ import page

MODULES = sorted(module.name for module in pkgutil.walk_packages(workloads.__path__, "workloads."))
FAMILIES = {
    name.removeprefix("workloads."): module.CASES
    for name in MODULES
    if name.count(".") == 1 and hasattr(module := importlib.import_module(name), "CASES")
}
CASES = [pytest.param(case, id=case.name) for cases in FAMILIES.values() for case in cases]

OF_EXTRAS = {"workloads.contrast.torch_models", "workloads.contrast.torch_runner", "workloads.contrast.torch_side"}
"""What cannot be imported where an extra is not installed."""


BUILD_ALL = """
import importlib, sys
for family in sys.argv[1:]:
    for case in importlib.import_module(f"workloads.{family}").CASES:
        claims = case.build().claims
        if not claims or not all(claim.why.strip() for claim in claims):
            print(case.name)
"""


def test_every_case_claims_something_and_says_why():
    """A claim without a reason helps nobody who sees it broken."""
    environ = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-c", BUILD_ALL, *FAMILIES]
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_both_sizes(case):
    """One for two cores of a laptop, one for an accelerator."""
    assert set(case.sizes) == {"small", "full"}


@pytest.mark.parametrize("case", CASES)
def test_every_case_fits_the_virtual_devices(case):
    """A CPU is divided into eight devices; a case for more would never run there."""
    assert 1 <= case.devices <= 8


@pytest.mark.parametrize("family", FAMILIES)
def test_the_ids_of_a_family_differ_and_carry_its_name(family):
    """The family stands in each baseline's folder; two cases with one id would share a file."""
    assert {case.family for case in FAMILIES[family]} == {family}
    assert len({case.sentence.lower() for case in FAMILIES[family]}) == len(FAMILIES[family])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_readme_explains_each_family(family):
    """A row of the table, and the docstring of the module, which is a section of the page."""
    text = (REPOSITORY / "workloads" / "README.md").read_text()
    assert re.search(rf"^\| `{family}` \|.+\|$", text, flags=re.MULTILINE), "a row in the table is missing"
    section = re.search(rf"^## {family}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert section, f"workloads/README.md: expected a section '## {family}'; run: python -m workloads"
    assert len(section[1]) > 200, f"workloads/README.md says of {family} only: {section[1]}"


def test_the_readme_has_the_docstrings_of_the_families():
    text = (REPOSITORY / "workloads" / "README.md").read_text()
    assert page(text) == text, "run: python -m workloads"


def test_every_family_has_a_test_file_and_every_test_file_a_family():
    """``-k`` selects by the file's name, too. Contrasts are no cases that a gate judges."""
    files = {file.stem for file in (REPOSITORY / "perf").glob("test_*.py")}
    assert files == {*(f"test_{family}" for family in FAMILIES), "test_contrast"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_test_file_is_a_docstring_imports_and_two_lines(family):
    """No number and no logic stands between a workload and its verdict; a warning that is meant may be let through."""
    tree = ast.parse((REPOSITORY / "perf" / f"test_{family}.py").read_text())
    docstring, *imports, test = tree.body
    assert ast.get_docstring(tree)
    assert isinstance(docstring, ast.Expr)
    lines = [ast.unparse(line) for line in imports]
    *marks, catalogue = [ast.unparse(decorator) for decorator in test.decorator_list]
    test.decorator_list = []
    assert ast.unparse(test) == f"def test_{family}(case, gate):\n    gate(case)"
    assert catalogue == f"catalogue({family}.CASES)"
    assert all(mark.startswith("pytest.mark.filterwarnings(") for mark in marks)
    wanted = ["from jaxgate.plugin import catalogue", f"from workloads import {family}"]
    assert lines == (["import pytest", *wanted] if marks else wanted)


WITHOUT_DEVICES = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import jax
try:
    jax.devices()
except RuntimeError as error:
    print("no devices:", error)
"""


def test_no_module_touches_a_device_when_it_is_imported():
    """Collection must not start a backend: the plugin divides the CPU, and a TPU belongs to one process."""
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_DEVICES, *(name for name in MODULES if name not in OF_EXTRAS)],
        env=os.environ | {"JAX_PLATFORMS": "nonsense", "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "no devices:" in result.stdout, "the backend that does not exist was found, so the test proves nothing"
    assert "nonsense" in result.stdout
