"""Serves the extractor: pages in, links and documents out."""
