"""Serves the frontier: seeds, links and outcomes in, fetch tasks out."""
