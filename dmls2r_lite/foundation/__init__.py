"""What the method stands on and what knows nothing of it: rules, checks, whole files, sums and mining."""
