"""Ready-made pages, one module a subject; each function returns a `Page` or a mapping from path to `Page`."""
