"""scaling: one training step on 1, 2, 4 and 8 devices, by the usual ways of spreading it.

*Strong*: the same work on more devices; each does less. *Weak*: the work of each device stays, and more of them do
more. Cases that do the same on other numbers of devices share a series (``Amount.series``): their rates side by side
are the scaling efficiency, which only real devices have. Facts hold on virtual ones, too: what each device does,
holds and sends, as a function of how many there are.
"""

from __future__ import annotations

from jaxgate.model import Case
from workloads.scaling import accumulated, data, sharded, tensor

CASES: tuple[Case, ...] = (*data.CASES, *tensor.CASES, *sharded.CASES, *accumulated.CASES)
