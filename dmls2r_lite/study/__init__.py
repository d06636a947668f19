"""Trials over many seeds, and what may be concluded from them."""
