"""Whether the compiler made something else of a program: a second opinion on its result."""
