"""What stands in the files: front matter and JSON rows (pure)."""

import base64
import gzip
import json
import re
from datetime import UTC, datetime
from typing import Any, Final

from trawl.kinds import BlockKind
from trawl.records import ExtractedDocument, Millis
from trawl.url import key_hex

as_json: Final = json.JSONEncoder(ensure_ascii=False).encode
"""A value as JSON text, characters as they are; `json.dumps` would make an encoder for each."""


def iso(at_ms: Millis) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def row(document: ExtractedDocument, duplicate_of: str, *, markdown: str, html: str | bytes) -> dict[str, Any]:
    """One line of `pages.jsonl`: the minimum record of the extraction requirement and what else is known.

    `markdown` is the path of the Markdown file, or empty. `html` is the path of the raw body's file, or the raw body
    itself, which then stands in the row as base64 of gzip.
    """
    packed = html if isinstance(html, str) else base64.b64encode(gzip.compress(html, 6, mtime=0)).decode()
    return {
        "url": document.url,
        "url_canonical": document.url_canonical,
        "final_url": document.final_url,
        "fetched_at": iso(document.fetched_at_ms),
        "status": document.status,
        "content_type": document.content_type,
        "content_sha256": document.content_sha256,
        "simhash": key_hex(document.simhash),
        "render_mode": str(document.render_mode),
        "response_headers": _headers(document),
        "extracted": json.loads(document.extracted or "{}"),
        "text": document.text,
        "html_compressed": packed,
        "crawl_source": document.crawl_source,
        "duplicate_of": duplicate_of or None,
        "title": document.title,
        "author": document.author,
        "published": document.published,
        "modified": document.modified,
        "language": document.language,
        "site_name": document.site_name,
        "description": document.description,
        "images": list(document.images),
        "keywords": list(document.keywords),
        "page_type": str(document.page_type),
        "confidence": round(document.confidence, 3),
        "redirects": [hop.url for hop in document.chain],
        "depth": document.depth,
        "tags": list(document.tags),
        "markdown_file": markdown or None,
        "document_key": key_hex(document.document_key),
        "extractor": document.extractor,
    }


def front_matter(document: ExtractedDocument) -> str:
    """The YAML block above the Markdown; every value is a JSON text, which YAML 1.2 reads as it is."""
    values: dict[str, Any] = {
        "url": document.final_url,
        "title": document.title,
        "fetched_at": iso(document.fetched_at_ms),
        "requested_url": document.url if document.url != document.final_url else "",
        "url_canonical": document.url_canonical if document.url_canonical != document.final_url else "",
        "author": document.author,
        "published": document.published,
        "modified": document.modified,
        "language": document.language,
        "site_name": document.site_name,
        "description": document.description,
        "page_type": str(document.page_type),
        "content_sha256": document.content_sha256,
    }
    kept = {"url", "title", "fetched_at"}
    lines = [f"{name}: {as_json(value)}" for name, value in values.items() if value or name in kept]
    return "\n".join(("---", *lines, "---", "", ""))


def page_text(document: ExtractedDocument) -> str:
    """The Markdown file of a document: front matter, then its content, under its title where it has no main heading."""
    content = document.markdown
    headings = (block.markdown for block in document.blocks if block.kind is BlockKind.HEADING)
    if document.title and not any(heading.startswith("# ") for heading in headings):
        title = " ".join(re.sub(r"([\\`*_\[\]<>#])", r"\\\1", document.title).split())
        content = f"# {title}\n\n{content}"
    return f"{front_matter(document)}{content}\n"


def _headers(document: ExtractedDocument) -> dict[str, str]:
    """Header fields by name; repeated fields are joined by a comma (RFC 9110, section 5.3)."""
    headers: dict[str, str] = {}
    for header in document.response_headers:
        known = headers.get(header.name)
        headers[header.name] = header.value if known is None else f"{known}, {header.value}"
    return headers
