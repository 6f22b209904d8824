"""What may be done with a page: statements, read from where sites make them, and one decision over all (pure)."""
