"""What can be gated here and what cannot, each with the next command."""
