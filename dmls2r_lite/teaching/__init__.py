"""What the notebooks and the exercises need."""
