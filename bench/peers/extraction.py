"""What peers without an extractor of their own do with a page: Markdown by trafilatura at its defaults."""

from pathlib import Path

import trafilatura

from bench.peers.output import save


def extract_and_save(folder: Path, url: str, html: str) -> None:
    """Extract a page, metadata included, and write it."""
    save(folder, url, trafilatura.extract(html, url=url, output_format="markdown", with_metadata=True))
