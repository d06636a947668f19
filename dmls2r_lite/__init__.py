"""Semi-supervised deep metric regression (DML-S2R), small enough to read."""
