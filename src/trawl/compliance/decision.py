"""One decision over all statements about a page (pure).

For each use: what the operator's own policy says holds, such as a licence (draft-ietf-aipref-vocab, section 5.2); else
any statement that forbids it; else any that allows it; else nobody has spoken (section 5.1). Of TDMRep's three places
the last one counts that says anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trawl.compliance.statements import POLICY, TDM_FILE, TDM_HEADER, TDM_META
from trawl.kinds import Use
from trawl.records import Evidence

_TDM_PLACES: Final = (TDM_META, TDM_HEADER, TDM_FILE)
"""The last in the order of processing first."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What holds for one use."""

    use: Use
    allowed: bool | None
    """None if nobody has spoken."""
    because: Evidence | None
    """The statement that decided; None if nobody has spoken."""


def decide(evidence: Iterable[Evidence]) -> dict[Use, Decision]:
    """What holds for each use, by all that is known of a page."""
    heard = list(evidence)
    place = next((place for place in _TDM_PLACES if any(one.source == place for one in heard)), None)
    counted = [one for one in heard if one.source not in _TDM_PLACES or one.source == place]
    return {use: _decision(use, [one for one in counted if one.purpose == use]) for use in Use}


def _decision(use: Use, statements: list[Evidence]) -> Decision:
    own = [one for one in statements if one.source == POLICY]
    deciding = sorted(own or statements, key=lambda one: one.allowed)
    return Decision(use, deciding[0].allowed, deciding[0]) if deciding else Decision(use, None, None)
