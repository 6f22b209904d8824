"""Among which documents a duplicate is looked for (pure)."""

from trawl.kinds import DedupScope
from trawl.records import ExtractedDocument


def namespace_of(document: ExtractedDocument) -> str:
    """The name of the set of documents that may be each other's duplicates, by the crawl's dedup scope.

    `crawl`: the documents of one crawl. `global`: those of every crawl with that scope. `prefix`: those of one crawl
    in the same folder of the same host, so that /v1/install and /v2/install both survive. `none`, and a document
    without a single word (an image page), whose text says nothing: the document alone.
    """
    if document.dedup_scope is DedupScope.NONE or document.simhash_tokens == 0:
        return f"document:{document.document_key}"
    if document.dedup_scope is DedupScope.GLOBAL:
        return "global"
    if document.dedup_scope is DedupScope.PREFIX:
        return f"prefix:{document.crawl_id}:{_folder(document.final_url)}"
    return f"crawl:{document.crawl_id}"


def _folder(url: str) -> str:
    """A URL up to and including the last slash of its path, without its scheme."""
    host, slash, path = url.partition("://")[2].partition("?")[0].partition("/")
    return host + slash + path.rpartition("/")[0]
