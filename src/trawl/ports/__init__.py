"""What the stages need of the world, as small Protocols; every adapter of one passes the same contract test.

No port assumes one process: each method is one atomic decision on one key group, so that it can be one Lua script, one
transaction or one plain method. Values that cross a port are frozen. Times are milliseconds since the epoch, UTC.
"""

from trawl.ports.clock import Clock
from trawl.ports.dedup import WITHDRAWN_MAX, DedupVerdict, Fingerprint, FingerprintIndex
from trawl.ports.frontier import (
    Admission,
    Completion,
    CrawlPolicy,
    CrawlProgress,
    FrontierStore,
    OriginState,
    OriginUpdate,
    Request,
    RequestRow,
    SeedScope,
    SpillQueue,
    TemplateCounts,
)
from trawl.ports.hydration import HostHydration, HydrationStore
from trawl.ports.network import HttpClient, HttpFailure, HttpRequest, HttpResponse, Resolution, Resolver, Signer
from trawl.ports.pages import (
    BlobStore,
    Chunk,
    Embedder,
    Hit,
    PageStore,
    SearchIndex,
    SearchQuery,
    StoredPage,
    Tap,
    Vectors,
)
from trawl.ports.politeness import FetchMarkers, PolitenessState, PolitenessStore, Reservation, RobotsEntry, RobotsStore
from trawl.ports.render import Rendered, Renderer, RenderFailure, RenderRequest

__all__ = [
    "WITHDRAWN_MAX",
    "Admission",
    "BlobStore",
    "Chunk",
    "Clock",
    "Completion",
    "CrawlPolicy",
    "CrawlProgress",
    "DedupVerdict",
    "Embedder",
    "FetchMarkers",
    "Fingerprint",
    "FingerprintIndex",
    "FrontierStore",
    "Hit",
    "HostHydration",
    "HttpClient",
    "HttpFailure",
    "HttpRequest",
    "HttpResponse",
    "HydrationStore",
    "OriginState",
    "OriginUpdate",
    "PageStore",
    "PolitenessState",
    "PolitenessStore",
    "RenderFailure",
    "RenderRequest",
    "Rendered",
    "Renderer",
    "Request",
    "RequestRow",
    "Reservation",
    "Resolution",
    "Resolver",
    "RobotsEntry",
    "RobotsStore",
    "SearchIndex",
    "SearchQuery",
    "SeedScope",
    "Signer",
    "SpillQueue",
    "StoredPage",
    "Tap",
    "TemplateCounts",
    "Vectors",
]
