"""One case, from observation to its final verdict, and what a run knows. No pytest."""
