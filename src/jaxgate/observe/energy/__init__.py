"""Energy: the counters of the machine, and a run of calls that they count."""

from jaxgate.observe.energy.counters import EnergyMeter, EnergyMeters
from jaxgate.observe.energy.protocol import Counter, CounterError, Device
from jaxgate.observe.energy.run import Burst, calls_of_burst, take_energy
