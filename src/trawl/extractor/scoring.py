"""Which segments are main content: hand-set weights over the segments' evidence (pure)."""

from dataclasses import dataclass
from typing import Final

from trawl.extractor.boilerplate import Flag, is_code_leak, is_consent_text
from trawl.extractor.content import Segment

_STRONG: Final = Flag.NAV | Flag.FOOTER | Flag.CONSENT | Flag.MODAL | Flag.ADS | Flag.SHARE | Flag.LOGIN
_WEAK: Final = Flag.ASIDE | Flag.RELATED | Flag.HEADER | Flag.FORM


@dataclass(frozen=True, slots=True)
class Selection:
    """The segments to keep, in document order, and how clear the decision was, from 0 to 1."""

    kept: list[Segment]
    margin: float


def select(found: list[Segment]) -> Selection:
    """Choose the main content."""
    kept = [segment for segment in found if _score(segment) > 0]
    return Selection(kept or [segment for segment in found if segment.chars], 0.5)


def _score(segment: Segment) -> float:
    chars = segment.chars
    if not chars:
        return -1.0
    density = min(segment.link_chars / chars, 1.0)
    score = -0.2 + min(chars / 100, 2.0) - 2.5 * density
    flags = segment.flags
    if flags & _STRONG:
        score -= 2.0
    if flags & _WEAK:
        score -= 0.7
    if flags & (Flag.MAIN | Flag.ARTICLE):
        score += 1.0
    if segment.kind in ("h1", "h2", "h3", "pre", "table"):
        score += 0.7
    if is_consent_text(segment.text) or (segment.kind != "pre" and is_code_leak(segment.text)):
        score -= 5
    return score
