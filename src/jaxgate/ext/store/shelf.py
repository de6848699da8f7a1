"""Programs in any store that fsspec knows (S3, GCS, a folder), each at ``<fingerprint>/<digest>.export.gz``.

An object is never changed: its name says what it holds. So two machines that record the same write the same, and one
that is killed leaves an object that nothing names, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from jaxgate.keep.files import PROGRAM_BYTES, read_bytes, write_atomic
from jaxgate.model.outcome import UsageError
from jaxgate.model.program import SUFFIX, UnreachableError

_T = TypeVar("_T")
_TRIES = 3
"""A run of many cases must not wait for each."""
_TIMEOUTS = {"s3": {"config_kwargs": {"connect_timeout": 10, "read_timeout": 30, "retries": {"max_attempts": 3}}}}
"""Of a protocol: options that keep a run from waiting for a store that does not answer."""


class Shelf:
    """One store, at an address as fsspec writes it: ``s3://bucket/folder``, ``gs://…``, ``/a/folder``.

    ``cache`` is for copies of what was read; ``None`` keeps none. All methods raise UnreachableError if the store does not
    answer.

    Raises:
        UsageError: If nothing that is installed knows such an address.
    """

    def __init__(self, url: str, cache: Path | None = None) -> None:
        try:
            import fsspec  # noqa: PLC0415 - what few projects need
        except ImportError:
            raise UsageError(f"{url}: a store of programs needs fsspec: pip install 'jaxgate[store]'") from None
        protocol = url.partition("://")[0] if "://" in url else "file"
        try:
            self._files, self._root = fsspec.core.url_to_fs(
                url, use_listings_cache=False, skip_instance_cache=True, **_TIMEOUTS.get(protocol, {})
            )
        except (ImportError, ValueError) as error:
            raise UsageError(f"{url}: no store of programs can be opened there: {error}") from None
        self.url = url
        self._cache = cache
        self._silent: list[str] = []  # why it did not answer, the last times that it was asked

    def get(self, fingerprint: str, digest: str) -> bytes | None:
        """A packed program; ``None`` if the store has none. What it holds is for the caller to check."""
        copy = None if self._cache is None else self._cache / f"{fingerprint}-{digest}{SUFFIX}"
        if copy is not None and copy.is_file():
            return read_bytes(copy, PROGRAM_BYTES)
        found: bytes | None = self._ask(
            lambda: self._files.cat_file(self._path(fingerprint, digest), start=0, end=PROGRAM_BYTES), missing=None
        )
        if copy is not None and found is not None:
            write_atomic(copy, found)
        return found

    def put(self, fingerprint: str, digest: str, packed: bytes) -> None:
        """Write a packed program, whole or not at all."""
        path = self._path(fingerprint, digest)

        def write() -> None:
            if "file" in self._files.protocol:  # elsewhere a typing error would make a bucket
                self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            with self._files.transaction:  # a folder has no objects: aside, then renamed
                self._files.pipe_file(path, packed)

        self._ask(write)

    def digests(self, fingerprint: str) -> list[str]:
        """What the store has of one structure."""
        paths: list[str] = self._ask(lambda: self._files.ls(f"{self._root}/{fingerprint}", detail=False), missing=[])
        return sorted(path.rpartition("/")[2].removesuffix(SUFFIX) for path in paths if path.endswith(SUFFIX))

    def names(self) -> set[tuple[str, str]]:
        """All that the store has, by fingerprint and digest."""
        paths: list[str] = self._ask(lambda: self._files.find(self._root), missing=[])
        parts = [path.removesuffix(SUFFIX).split("/")[-2:] for path in paths if path.endswith(SUFFIX)]
        return {(fingerprint, digest) for fingerprint, digest in parts}

    def _path(self, fingerprint: str, digest: str) -> str:
        return f"{self._root}/{fingerprint}/{digest}{SUFFIX}"

    def _ask(self, call: Callable[[], _T], **missing: Any) -> _T:
        if len(self._silent) >= _TRIES:
            raise UnreachableError(f"{self.url}: {self._silent[-1]} ({_TRIES} times in a row; it is asked no more)")
        try:
            found = call()
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            if isinstance(error, FileNotFoundError) and "missing" in missing:
                found = missing["missing"]
            else:
                self._silent.append((str(error).strip().splitlines() or [type(error).__name__])[0])
                raise UnreachableError(f"{self.url}: {self._silent[-1]}") from None
        self._silent.clear()
        return found
