"""What DML-S2R is held against: the methods of the paper, placebos of step 2, plain models."""
