"""Second opinions on the results of every program of this repository: none may differ, and what each costs."""
