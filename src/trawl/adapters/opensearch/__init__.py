"""Pages and chunks in OpenSearch, 2.x or 3.x (extra `opensearch`)."""

from trawl.adapters.opensearch.client import OpenSearchClient, connect
from trawl.adapters.opensearch.pages import OpenSearchPageStore
from trawl.adapters.opensearch.search import OpenSearchSearchIndex

__all__ = ["OpenSearchClient", "OpenSearchPageStore", "OpenSearchSearchIndex", "connect"]
