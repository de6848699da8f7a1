"""One file that shows anybody what changed in a case, without anything of its author; and smaller programs that still show it."""
