"""Which origins offer HTTP/3, as far as their answers said so (RFC 7838, RFC 9114)."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from trawl.records import Header

ORIGINS_MAX: Final = 10_000
_AGE_SECONDS: Final = 86_400
"""How long an offer holds that does not say it (RFC 7838, section 3.1)."""
_AGE_SECONDS_MAX: Final = 7 * 86_400
_BROKEN_SECONDS: Final = 300
"""For so long an offer is not taken up again that did not work, as where a firewall lets no UDP through."""
_OFFER: Final = re.compile(r'\s*h3="(?P<host>[^":]*):(?P<port>\d{1,5})"(?P<parameters>[^,]*)')
_AGE: Final = re.compile(r';\s*ma\s*=\s*"?(\d{1,10})')
_VALUE_CHARS_MAX: Final = 2_000


class Alternatives:
    """Remembers offers by origin. Only the host and port that were checked are ever used, over QUIC instead of TCP."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, float] = OrderedDict()
        self._broken: OrderedDict[str, float] = OrderedDict()

    def offers(self, origin: str, now: float) -> bool:
        """Whether an origin (scheme, host, port) is to be asked over HTTP/3."""
        return self._until.get(origin, 0.0) > now and self._broken.get(origin, 0.0) <= now

    def learn(self, origin: str, port: int, headers: Iterable[Header], now: float) -> None:
        """Take in what an answer says of the origin; nothing changes if it says nothing."""
        said = ",".join(one.value for one in headers if one.name == "alt-svc")[:_VALUE_CHARS_MAX]
        if not said:
            return
        self._until.pop(origin, None)
        offer = next((one for one in _OFFER.finditer(said) if not one["host"] and int(one["port"]) == port), None)
        if offer is None:  # `clear`, another protocol, or another place, which nobody has checked
            return
        age = _AGE.search(offer["parameters"])
        _put(self._until, origin, now + min(int(age[1]) if age else _AGE_SECONDS, _AGE_SECONDS_MAX))

    def failed(self, origin: str, now: float) -> None:
        """An offer was taken up in vain."""
        _put(self._broken, origin, now + _BROKEN_SECONDS)


def _put(times: OrderedDict[str, float], origin: str, until: float) -> None:
    times[origin] = until
    times.move_to_end(origin)
    if len(times) > ORIGINS_MAX:
        times.popitem(last=False)
