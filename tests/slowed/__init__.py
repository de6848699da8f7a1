"""Ten slow-downs of different kinds: programs that are recorded, edited, and must be told apart by their culprit."""
