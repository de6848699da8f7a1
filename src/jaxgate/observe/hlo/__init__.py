"""What optimised HLO says: operations, source lines, loops, collectives, buffers."""

from jaxgate.observe.hlo.buffers import largest_allocations, rows_of
from jaxgate.observe.hlo.collectives import COLLECTIVES, KINDS, Collective, read_collectives
from jaxgate.observe.hlo.diff import program_diff
from jaxgate.observe.hlo.parser import HloText, Instruction, read_hlo
from jaxgate.observe.hlo.products import count_products
from jaxgate.observe.hlo.replica_groups import axes_of
from jaxgate.observe.hlo.traffic import BYTES, count_traffic
