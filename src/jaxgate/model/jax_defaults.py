"""What JAX and XLA do in a process that nobody told anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxDefaults:
    """The settings of a fresh process without any variable or call that sets one.

    Attributes:
        jax: Version of jax.
        file: The file that jax was imported from: another installation has other defaults.
        config: Every option of ``jax.config``, as text.
        compile_options: Hash of the options that the compiler is given, XLA's flags included.
    """

    jax: str
    file: str
    config: Mapping[str, str]
    compile_options: str
