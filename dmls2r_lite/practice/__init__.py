"""Few labels, done well: from which rows to label to a model to take home."""
