"""Guards for a block of anybody's code: no retrace, no implicit transfer, at most so many bytes left behind."""

from jaxgate.observe.guards.live_bytes import BytesError, at_most_bytes
from jaxgate.observe.guards.retrace import RetraceError, no_retrace
from jaxgate.observe.guards.transfer import TransferError, no_transfer

__all__ = ["BytesError", "RetraceError", "TransferError", "at_most_bytes", "no_retrace", "no_transfer"]
