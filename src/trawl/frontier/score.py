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
    stale = 1.0 if staleness_seconds is None else 1.0 - math.exp(-max(staleness_seconds, 0.0) / _WEEK_SECONDS)
    sitemap = 0.5 if sitemap_priority is None else min(max(sitemap_priority, 0.0), 1.0)
    return (
        _WEIGHT_DEPTH / (depth + 1)
        + _WEIGHT_PRIORITY * min(max(seed_priority, 0.0), 1.0)
        + _WEIGHT_SITEMAP * sitemap
        + _WEIGHT_STALENESS * stale
        + _WEIGHT_DIVERSITY / (1.0 + math.log1p(host_urls))
    )
