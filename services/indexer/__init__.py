"""Serves the indexer: unique documents in, chunks in the search index."""
