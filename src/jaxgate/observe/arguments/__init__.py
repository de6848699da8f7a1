"""The arguments of a call: how JAX's cache sees them, fresh copies, what a step carries on, and who holds which part."""

from jaxgate.observe.arguments.arrival import Given, add_arrivals, describe_next
from jaxgate.observe.arguments.carry import (
    Carry,
    Names,
    NextArgs,
    advance,
    carry_donated,
    undeclared_state,
    with_next_args,
)
from jaxgate.observe.arguments.feeder import Call, Feeder, has_shapes, on_device
from jaxgate.observe.arguments.function_case import case_of_function
from jaxgate.observe.arguments.local_shards import (
    Shards,
    Values,
    inputs_fingerprint,
    on_host,
    pieces,
    place_of,
    side_by_side,
)
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep, own_devices, processes_of
from jaxgate.observe.arguments.signature import (
    UNKNOWN,
    ArgumentKey,
    argument_keys,
    argument_names,
    difference,
    explain,
    join,
    leaves_with_paths,
    place_signature,
    read_results,
    read_signature,
    short,
    to_host,
)
from jaxgate.observe.arguments.static_arguments import dynamic_leaves, given_leaves
from jaxgate.observe.arguments.static_trees import open_static
from jaxgate.observe.arguments.static_values import static_change
