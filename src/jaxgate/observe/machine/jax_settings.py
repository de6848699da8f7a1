"""JAX's settings: how they differ from JAX's own defaults, are carried to another process, set for a while, and refused.

Everything counts that may change a program, its executable or its run. What cannot is listed in ``HARMLESS``, each group
with the reason; ``ci/settings.py`` changes every option and shows what that does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax

from jaxgate.model.machine import COMPILE_OPTIONS, UNKNOWN_SETTINGS, JaxDefaults
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.jax_extend import jax_extend

SETTINGS = (
    "jax_debug_nans", "jax_default_matmul_precision", "jax_default_prng_impl", "jax_disable_jit", "jax_enable_x64",
    "jax_numpy_dtype_promotion", "jax_optimization_level", "jax_threefry_partitionable",
    "jax_use_shardy_partitioner", "jax_use_simplified_jaxpr_constants",
)  # fmt: skip
"""Named in every environment, also at their defaults: a release that changes such a default is a change."""

HARMLESS: Mapping[str, frozenset[str]] = {
    "it says what is logged, printed or dumped": frozenset(
        {
            "jax_captured_constants_report_frames", "jax_captured_constants_warn_bytes",
            "jax_compiler_detailed_logging_min_ops", "jax_debug_log_modules", "jax_distributed_debug",
            "jax_dump_ir_modes", "jax_dump_ir_to", "jax_explain_cache_misses", "jax_include_debug_info_in_dumps",
            "jax_log_checkpoint_residuals", "jax_log_compiles", "jax_logging_level", "jax_pallas_verbose_errors",
            "jax_pprint_use_color", "jax_traceback_filtering", "jax_tracer_error_num_traceback_frames",
        }
    ),
    "it says which source lines a program names, and no fingerprint reads these": frozenset(
        {
            "jax_hlo_source_file_canonicalization_regex",
            "jax_include_full_tracebacks_in_locations",
            "jax_mosaic_unzip_debug_locations",
            "jax_source_url_schema",
            "jax_traceback_in_locations_limit",
        }
    ),
    "it is about the compilation cache, and what comes out of it is the same executable": frozenset(
        {
            "jax_compilation_cache_check_contents", "jax_compilation_cache_dir", "jax_compilation_cache_expect_pgle",
            "jax_compilation_cache_include_metadata_in_key", "jax_compilation_cache_max_size",
            "jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes", "jax_raise_persistent_cache_errors",
            "jax_remove_custom_partitioning_ptr_from_cache_key",
        }
    ),
    "it chooses devices, which the name of the hardware and the arguments' shardings say": frozenset(
        {
            "jax_backend_target", "jax_cuda_visible_devices", "jax_num_cpu_devices", "jax_oneapi_visible_devices",
            "jax_platform_name", "jax_platforms", "jax_rocm_visible_devices", "jax_xla_backend",
        }
    ),
    "it is about how processes find and trust each other": frozenset(
        {
            "jax_check_proxy_envs", "jax_cpu_get_global_topology_timeout_minutes",
            "jax_cpu_get_local_topology_timeout_minutes", "jax_cross_host_transfer_timeout_seconds",
            "jax_distributed_verify_secure_credentials", "jax_enable_preemption_service",
            "jax_enable_recoverability", "jax_mtls_ca_file", "jax_mtls_cert_file", "jax_mtls_key_file",
            "jax_mtls_peer_uri_prefix", "jax_share_binary_between_hosts",
            "jax_share_binary_between_hosts_timeout_ms",
        }
    ),
    "it stops a run that breaks a rule, and changes nothing in one that does not": frozenset(
        {
            "jax_array_garbage_collection_guard", "jax_check_static_indices",
            "jax_debug_leaked_clients_on_clear_backends", "jax_disallow_mesh_context_manager", "jax_legacy_prng_key",
            "jax_numpy_rank_promotion", "jax_raise_on_ppermute_sort_diff", "jax_thread_guard", "jax_transfer_guard",
            "jax_transfer_guard_device_to_device", "jax_transfer_guard_device_to_host",
            "jax_transfer_guard_host_to_device",
        }
    ),
}  # fmt: skip
"""Reason to the options of ``jax.config`` that it excuses from the environment."""
_EXCUSED = frozenset().union(*HARMLESS.values())

_UNFIT = {
    "jax_disable_jit": "nothing is compiled, so that no retrace and no launch would show",
    "jax_debug_nans": "JAX reads every result back and ignores donation",
    "jax_debug_infs": "JAX reads every result back",
}
"""Settings for finding faults, which projects leave on for all of their tests."""

_known: list[JaxDefaults | None] = [None]


def know_defaults(defaults: JaxDefaults | None) -> None:
    """Set what JAX does by default in this process; ``None`` where that could not be found out."""
    _known[0] = defaults


def known_defaults() -> JaxDefaults | None:
    """What ``know_defaults`` was given."""
    return _known[0]


def read_defaults() -> JaxDefaults:
    """The settings as they are now: the defaults, in a process without any setting."""
    config = {name: str(value) for name, value in jax.config.values.items()}
    return JaxDefaults(jax=jax.__version__, file=jax.__file__, config=config, compile_options=_compile_options())


def unusual_settings() -> dict[str, str]:
    """What differs from JAX's defaults and may change a program, its executable or its run: name to text.

    Beside options of ``jax.config`` there is ``COMPILE_OPTIONS``: a hash of what the compiler is given, as XLA understood
    it when it started, whatever happened to the variables since. ``UNKNOWN_SETTINGS`` stands where the defaults are not known.
    """
    usual = _known[0]
    if usual is None or (usual.jax, usual.file) != (jax.__version__, jax.__file__):
        return {UNKNOWN_SETTINGS: "unknown: JAX's defaults could not be read"}
    now = read_defaults()
    found = {
        name: value for name, value in now.config.items() if name not in _EXCUSED and value != usual.config.get(name)
    }
    if not now.compile_options or now.compile_options != usual.compile_options:
        found[COMPILE_OPTIONS] = now.compile_options or "unknown"
    return found


def refuse_settings() -> None:
    """Refuse to measure under settings with which JAX runs other programs than the ones to be judged.

    Raises:
        InvalidCaseError: If nothing is compiled, or every result is read back and donation is left out.
    """
    for name, what in unfit_settings().items():
        raise InvalidCaseError(
            "looking at JAX's settings", f"expected {name} off, found it on: {what}; switch it off for this test"
        )


def unfit_settings() -> dict[str, str]:
    """Settings that are on and with which no case can be judged, each with the reason."""
    return {name: what for name, what in _UNFIT.items() if getattr(jax.config, name, False)}


def compilation_cache() -> str:
    """The folder of JAX's persistent cache of compiled programs; empty without one."""
    return jax.config.jax_compilation_cache_dir or ""


def settings() -> dict[str, Any]:
    """The JAX settings that may change programs, as they are now, for a file: a fresh process must have the same."""
    written = (bool, int, float, str, type(None))
    return {name: value for name, value in all_settings().items() if isinstance(value, written)}


def apply_settings(found: Mapping[str, Any]) -> None:
    """Set JAX as another process had it, or this one at another time."""
    here = jax.config.values  # JAX makes this dictionary anew each time that it is asked for it
    for name, value in found.items():
        if here.get(name) != value:
            jax.config.update(name, value)


@contextmanager
def settings_of(found: Mapping[str, Any]) -> Iterator[None]:
    """Give JAX the settings that ``all_settings`` gave, for a while; afterwards those of now, unset values too."""
    here = all_settings()
    apply_settings(found)
    try:
        yield
    finally:
        apply_settings(here)


def all_settings() -> dict[str, Any]:
    """Every JAX setting that may change a program or its run, as it is now; an unset one is ``None``."""
    return {name: value for name, value in jax.config.values.items() if name not in _EXCUSED}


def _compile_options() -> str:
    """Hash of the options that the compiler is given, XLA's flags as it parsed them included; empty where unreadable."""
    try:
        return hashlib.sha256(jax_extend().backend.get_compile_options(1, 1).SerializeAsString()).hexdigest()[:12]
    except (AttributeError, TypeError):
        return ""
