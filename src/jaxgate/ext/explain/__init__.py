"""What a run said of a case, and the next experiment: for people, and for programs that drive jaxgate."""
