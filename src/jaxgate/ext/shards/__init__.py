"""A suite that is cut over several machines, and one run that is made of what they left."""
