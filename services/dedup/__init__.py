"""Serves the duplicate gate: documents in, unique documents and outcomes out."""
