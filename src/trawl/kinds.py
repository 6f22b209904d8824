"""The closed vocabularies of records: every enumerated field takes its value from here.

Each is a string enumeration, so that a value reads the same in code, Avro, JSON, logs and metrics. The first member is
the default that an older reader falls back to when it meets a value it does not know.
"""

from enum import StrEnum
from typing import Final


class SeedKind(StrEnum):
    """What a seed URL points at."""

    AUTO = "auto"
    PAGE = "page"
    SITEMAP = "sitemap"
    FEED = "feed"
    URL_LIST = "url_list"


class ScopeKind(StrEnum):
    """Which URLs a crawl may visit, relative to its seeds."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class RecrawlKind(StrEnum):
    """How often a page is visited again."""

    ONCE = "once"
    INTERVAL = "interval"
    ADAPTIVE = "adaptive"
    DEADLINE = "deadline"


class DedupScope(StrEnum):
    """Among which documents a near-duplicate is looked for."""

    CRAWL = "crawl"
    GLOBAL = "global"
    PREFIX = "prefix"
    NONE = "none"


class Purpose(StrEnum):
    """Why a URL is fetched, and so which reader its body gets."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    FEED = "feed"
    URL_LIST = "url_list"
    AUTO = "auto"


LIST_PURPOSES: Final = frozenset({Purpose.SITEMAP, Purpose.FEED, Purpose.URL_LIST})
"""Fetches that are for no page: they have a budget of their own."""


class Use(StrEnum):
    """What may be done with a URL and its page: the purposes that sites speak of."""

    FETCH = "fetch"
    FOLLOW = "follow"
    INDEX = "index"
    SNIPPET = "snippet"
    AI_INPUT = "ai-input"
    AI_TRAIN = "ai-train"


class Found(StrEnum):
    """How a URL was discovered."""

    UNKNOWN = "unknown"
    SEED = "seed"
    LINK = "link"
    SITEMAP = "sitemap"
    FEED = "feed"
    URL_LIST = "url_list"
    ROBOTS = "robots"
    REDIRECT = "redirect"
    CANONICAL = "canonical"
    ALTERNATE = "alternate"


class RenderMode(StrEnum):
    """How a page's DOM was obtained."""

    STATIC = "static"
    HEADLESS = "headless"


class Stage(StrEnum):
    """The five stages, in the order of the flow."""

    FRONTIER = "frontier"
    FETCHER = "fetcher"
    EXTRACTOR = "extractor"
    DEDUP = "dedup"
    INDEXER = "indexer"


class OutcomeClass(StrEnum):
    """What became of one fetch. Retryable classes are followed by another attempt, the others are final."""

    UNKNOWN = "unknown"
    INDEXED = "indexed"
    DUPLICATE = "duplicate"
    ALIAS = "alias"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    DISCOVERED = "discovered"
    ROBOTS = "robots"
    RETRY = "retry"
    DEFERRED = "deferred"
    NEEDS_RENDER = "needs_render"


class RobotsState(StrEnum):
    """What is known of a host's robots.txt (RFC 9309, section 2.3.1)."""

    UNKNOWN = "unknown"
    RULES = "rules"
    ALLOW_ALL = "allow_all"
    UNAVAILABLE = "unavailable"


class PageType(StrEnum):
    """The kind of a page, by what a reader comes for."""

    OTHER = "other"
    ARTICLE = "article"
    DOCUMENTATION = "documentation"
    FORUM = "forum"
    PRODUCT = "product"
    COLLECTION = "collection"
    LISTING = "listing"
    SERVICE = "service"


class BlockKind(StrEnum):
    """The kind of one block of main content."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    QUOTE = "quote"
    OTHER = "other"


class Novelty(StrEnum):
    """How a unique document relates to what was indexed before."""

    NEW = "new"
    CHANGED = "changed"
    WITHDRAWN = "withdrawn"


class ChangeKind(StrEnum):
    """The kind of a change event."""

    UNKNOWN = "unknown"
    CREATED = "created"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"
    CRAWL_FINISHED = "crawl_finished"


class ControlAction(StrEnum):
    """What an operator asks of a crawl."""

    UNKNOWN = "unknown"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    LIMIT = "limit"
    TAKEDOWN = "takedown"


NOT_MODIFIED: Final = 304
"""The HTTP status of an answer that nothing has changed (RFC 9110, section 15.4.5)."""

DUPLICATE_WITHDRAWAL: Final = "duplicate"
"""Why a document is withdrawn whose text another one has; the duplicate gate tells its outcome, not the indexer."""
