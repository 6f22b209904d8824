"""The fetcher stage: politeness, safety, redirects, robots.txt."""
