"""Programs compiled for hardware that is not attached: in the process that compiles, and in the one that asks it."""

from jaxgate.observe.target.compiled import TargetExecutable, placement
from jaxgate.observe.target.compilers import COMPILERS
from jaxgate.observe.target.kernels import refuse_interpreted
from jaxgate.observe.target.topology import NoTargetError, Topology, find_topology
