"""What clocks and counters say: duels, phases, stored times, energy."""
