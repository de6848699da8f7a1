"""What is asked for: workloads, what they build, their names and claims."""
