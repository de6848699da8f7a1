"""How good the gate is, beside what people would use instead: ``make evaluate``; the figures are in docs/evaluation.md."""
