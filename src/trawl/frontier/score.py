"""The order in which URLs are worth fetching: one pure function."""

import math

_WEEK_SECONDS = 7 * 86_400.0

_WEIGHT_DEPTH = 0.45
_WEIGHT_PRIORITY = 0.20
_WEIGHT_SITEMAP = 0.10
_WEIGHT_STALENESS = 0.15
_WEIGHT_DIVERSITY = 0.10


def score(
    *,
    depth: int,
    host_urls: int = 0,
    seed_priority: float = 0.5,
    sitemap_priority: float | None = None,
    staleness_seconds: float | None = None,
) -> float:
    """How much sooner than others a URL should be fetched, from 0 to 1.

    Shallow pages come first (1 / (depth + 1)), then pages of hosts of which little is known (`host_urls` were admitted
    so far), pages that were not fetched for long (`staleness_seconds`; None is never fetched, the stalest), and what
    the seed and the sitemap say (None counts as the protocol's default of 0.5).
    """
    sitemap = 0.5 if sitemap_priority is None else min(max(sitemap_priority, 0.0), 1.0)
    return (
        _WEIGHT_DEPTH / (depth + 1)
        + _WEIGHT_PRIORITY * min(max(seed_priority, 0.0), 1.0)
        + _WEIGHT_SITEMAP * sitemap
        + staleness(math.inf if staleness_seconds is None else staleness_seconds)
        + diversity(host_urls)
    )


def staleness(seconds: float) -> float:
    """The part of the score that the time since a page's last visit makes; infinity is never."""
    return _WEIGHT_STALENESS * (1.0 - math.exp(-max(seconds, 0.0) / _WEEK_SECONDS))


def diversity(host_urls: int) -> float:
    """The part of the score that the number of URLs admitted of its host makes."""
    return _WEIGHT_DIVERSITY / (1.0 + math.log1p(host_urls))
