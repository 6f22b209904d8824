"""The duplicate gate: each text is indexed once."""
