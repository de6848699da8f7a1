"""A training loop: data, step, log, save, and a fresh process that restores and goes on."""
