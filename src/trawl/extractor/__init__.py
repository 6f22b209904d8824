"""The extractor stage: links, metadata, main content, Markdown; sitemaps and feeds."""
