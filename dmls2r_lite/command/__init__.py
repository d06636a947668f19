"""The `dmls2r` command."""
