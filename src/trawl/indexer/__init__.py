"""Documents to chunks, chunks to vectors, and both to the search index."""
