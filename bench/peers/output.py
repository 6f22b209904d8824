"""Where every peer puts its pages: one Markdown file each."""

from pathlib import Path
from urllib.parse import urlsplit


def save(folder: Path, url: str, markdown: str | None) -> None:
    """Write one page; an empty file if there is no Markdown."""
    name = urlsplit(url).path.strip("/").replace("/", "_") or "index"
    (folder / f"{name}.md").write_text(markdown or "", encoding="utf-8", errors="replace")
