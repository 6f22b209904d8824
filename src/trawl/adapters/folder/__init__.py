"""A crawl's results as files: raw HTML, Markdown with front matter, one JSON line per page."""

from trawl.adapters.folder.tap import FORMATS, FolderTap

__all__ = ["FORMATS", "FolderTap"]
