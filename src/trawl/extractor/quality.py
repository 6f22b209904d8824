"""How sure the extractor is that it found the main content, from 0 to 1 (pure)."""

import math


def confidence(*, words: int, link_share: float, kept_share: float, margin: float) -> float:
    """A number that grows with the amount of text and the clarity of the decision.

    `link_share` and `kept_share` are shares of characters, `margin` the mean distance of the segments' probabilities
    from an even chance, 0 to 1, weighted by their length.
    """
    if not words:
        return 0.0
    amount = 1 - math.exp(-words / 120)
    return round(
        max(0.0, min(1.0, amount * (0.25 + 0.75 * margin) * (1 - 0.5 * link_share) * (0.6 + 0.4 * kept_share))), 3
    )
