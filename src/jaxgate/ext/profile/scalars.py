"""Metrics of a run as TensorBoard's scalars: one event file for each run, all in one folder.

The bytes are written here: TensorBoard's own writer takes 0.2 s to import, in each run. ``tests/keep/test_artifacts.py``
reads them with TensorBoard. The format is protobuf (``Event``, ``Summary``) in records of ``TFRecord``.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from jaxgate.keep.files import write_atomic


def can_write_scalars() -> bool:
    """Whether TensorBoard, which is an extra, is there to show them."""
    return find_spec("tensorboard") is not None


def write_scalars(folder: Path, step: int, cases: Mapping[str, Mapping[str, float]]) -> None:
    """Add the metrics of a run, by case and by name, which ends with the unit: ``run_ns``, ``temp_bytes``."""
    values = [
        _message(1, _message(1, f"{case}/{name}".encode()) + b"\x15" + struct.pack("<f", value))  # tag, simple_value
        for case, metrics in sorted(cases.items())
        for name, value in metrics.items()
    ]
    now = time.time()
    begun = b"\x09" + struct.pack("<d", now)  # wall_time
    events = [begun + _message(3, b"brain.Event:2"), begun + b"\x10" + _varint(step) + _message(5, b"".join(values))]
    folder.mkdir(parents=True, exist_ok=True)
    name = f"events.out.tfevents.{int(now)}.jaxgate.{os.getpid()}.{step}"
    write_atomic(folder / name, b"".join(map(_record, events)))


def _varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])


def _message(field: int, payload: bytes) -> bytes:
    """A field whose value is bytes, with its length before it."""
    return _varint(field << 3 | 2) + _varint(len(payload)) + payload


def _record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + _checksum(length) + event + _checksum(event)


def _checksum(payload: bytes) -> bytes:
    """CRC-32C (Castagnoli), rotated and shifted as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in payload:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC = [_crc_of(byte) for byte in range(256)]
