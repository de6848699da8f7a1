"""A compiled program as a thing to keep and compare: exported, fingerprinted, its donation and communication."""

from jaxgate.observe.program.communication import Communication, read_communication
from jaxgate.observe.program.custom_call_libraries import find_native_code
from jaxgate.observe.program.demand import read_demand
from jaxgate.observe.program.donation import (
    DonatedLeaf,
    lost_by_size,
    lost_bytes,
    lost_lines,
    lost_unknown,
    read_donation,
    refuse_shared_buffers,
)
from jaxgate.observe.program.executable_fingerprint import executable_fingerprint, same_executable
from jaxgate.observe.program.export import (
    NotReplayableError,
    UnreadableProgramError,
    custom_calls,
    export_program,
    export_whole,
    find_feeds,
    load_program,
    read_program,
    serves_as,
    split_call,
)
from jaxgate.observe.program.recompile import compile_exported, spread
from jaxgate.observe.program.stablehlo_diff import program_changes, readable
