"""Time by duels: with the baseline, with the reference, in this process and in fresh ones."""
