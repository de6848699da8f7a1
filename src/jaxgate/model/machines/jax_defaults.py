"""What JAX and XLA do in a process without any setting, and what an environment calls the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMPILE_OPTIONS = "compile_options"
"""Entry of the environment: a hash of what the compiler is given, where that differs from its defaults by a setting, a
variable or a file."""
UNKNOWN_SETTINGS = "settings"
"""Entry of the environment where the defaults are not known: nothing may then be called unchanged."""
CORES = "cores"
"""Entry of the environment where a process may not use all cores: how many of how many."""


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
