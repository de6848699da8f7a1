"""Mistakes planted into the suite's own workloads: each must turn its case red and be named as the culprit."""

from dataclasses import replace
from importlib import import_module

GROUPS = {
    "layers": ("attention", "kernels", "precision", "remat", "scatter", "shapes"),
    "loops": (
        "donation", "checkpoint", "input_pipeline", "latency", "scan", "serving", "training", "value_and_grad",
        "vmap",
    ),
    "meshes": ("hosts", "pjit", "placement"),
    "replicas": ("composed", "moe", "pmap", "scaling"),
}  # fmt: skip
"""Families whose mistakes one test file plants: each about as long as the others."""

FAULTS = {
    group: tuple(
        replace(fault, kind=family)
        for family in families
        for fault in import_module(f"tests.faults.catalogue.{family}").FAULTS
    )
    for group, families in GROUPS.items()
}
"""By group, each of its family."""
