"""scaling: one training step on 1, 2, 4 and 8 devices, by the usual ways of spreading it.

One training step with momentum on more and more devices. *Strong*: the same batch, data-parallel on 1 to 8 and
tensor-parallel on 2 to 8, where each device does its share. *Weak*: the same share of each device, data-parallel, fully
sharded, and with gradients accumulated over micro-batches. The reference is what one gets by forgetting: everything
collected on every device; the alternatives are one device with its share, a state on each device, an exchange in each
micro-batch. Claims say what may grow with the number of devices: what is done and held on each is 1/n of it where
scaling is strong and the same where it is weak; what is sent is a gradient for each parameter and step (data-parallel),
results once for each pair of layers and pass (tensor-parallel), three times the parameters (fully sharded), on any
number of devices.

The mistake is the fleet that spends its time on exchanging gradients, not on the step: bytes that are sent in each
micro-batch, twice, or for kernels laid out the wrong way round, while nothing fails and one device shows nothing. How
much of a step such an exchange takes, and how much of it hides behind computation, only real devices show: the rates of
one series (`Amount.series`) side by side are its scaling efficiency, and are shown, not gated. On virtual devices, which
share one CPU, those rates mean nothing; the facts hold. Planted: a batch that is not sharded, or grows with the devices;
momentum on every device; all kernels collected before the loop; both kernels by columns; gradients exchanged in each
micro-batch, or twice. Sources: "Distributed arrays and automatic parallelization" and "Manual parallelism with
shard_map" in JAX's documentation; Megatron-LM (Shoeybi et al., 2019); ZeRO (Rajbhandari et al., 2020).
"""

from jaxgate import Case
from workloads.scaling import network, sharded

CASES: tuple[Case, ...] = (*network.CASES, *sharded.CASES)
