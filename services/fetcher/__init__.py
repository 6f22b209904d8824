"""Serves the fetcher: fetch tasks in, pages and outcomes out."""
