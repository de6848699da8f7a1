"""A reader of protocol buffers without their schema: XLA's own messages come with none installed.

All of it raises ``ValueError`` for bytes that are no message, and for a field that holds something else.
"""

from __future__ import annotations

from collections.abc import Mapping

Value = int | bytes
Message = Mapping[int, list[Value]]
"""The values of each field, by its number, in the order of the bytes."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_SHIFT = 63


def read_message(content: bytes) -> Message:
    """Part a message into its fields."""
    fields: dict[int, list[Value]] = {}
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        value: Value
        if key & 7 == _VARINT:
            value, at = _varint(content, at)
        else:
            size, at = _length(content, at, key & 7)
            if at + size > len(content):
                raise ValueError("it ends within a field")
            value, at = content[at : at + size], at + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _length(content: bytes, at: int, wire: int) -> tuple[int, int]:
    if wire == _BYTES:
        return _varint(content, at)
    if wire in (_FIXED64, _FIXED32):
        return (8 if wire == _FIXED64 else 4), at
    raise ValueError(f"it has a field of the unknown kind {wire}")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift <= _MAX_SHIFT:
        if at >= len(content):
            raise ValueError("it ends within a number")
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return value, at
        shift += 7
    raise ValueError("it has a number of more than 64 bits")


def number(message: Message, field: int) -> int:
    """A number; 0 if the field is absent, as the format has it. The last one counts."""
    value = message.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")  # noqa: TRY004 - the content is at fault
    return value


def text(message: Message, field: int) -> str:
    """Text; empty if the field is absent."""
    return _content(message.get(field, [b""])[-1], field).decode()


def texts(message: Message, field: int) -> list[str]:
    """All texts of a repeated field."""
    return [_content(value, field).decode() for value in message.get(field, [])]


def messages(message: Message, field: int) -> list[Message]:
    """All messages of a repeated field."""
    return [read_message(_content(value, field)) for value in message.get(field, [])]


def _content(value: Value, field: int) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"field {field} is a number")  # noqa: TRY004 - the content is at fault
    return value
