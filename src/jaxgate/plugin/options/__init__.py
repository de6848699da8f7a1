"""What a run can be asked for, by flag, variable and ini key."""
