"""Which addresses and ports may be fetched (pure): the defence against server-side request forgery.

The networks are those of the IANA special-purpose registries (RFC 6890 and its updates). An IPv6 address that carries
an IPv4 address is judged by what it carries; forms that only serve to hide one are refused as they are.
"""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Self, TypeAlias

from trawl.errors import SettingsError

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

METADATA: Final = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"})
"""Addresses at which clouds tell a machine its secrets."""

_REFUSED_4: Final = (
    ("unspecified", "0.0.0.0/8"),
    ("private", "10.0.0.0/8"),
    ("shared by carriers", "100.64.0.0/10"),
    ("loopback", "127.0.0.0/8"),
    ("link-local", "169.254.0.0/16"),
    ("private", "172.16.0.0/12"),
    ("reserved", "192.0.0.0/24"),
    ("reserved for documentation", "192.0.2.0/24"),
    ("reserved", "192.31.196.0/24"),
    ("reserved", "192.52.193.0/24"),
    ("reserved", "192.88.99.0/24"),
    ("private", "192.168.0.0/16"),
    ("reserved", "192.175.48.0/24"),
    ("reserved for benchmarks", "198.18.0.0/15"),
    ("reserved for documentation", "198.51.100.0/24"),
    ("reserved for documentation", "203.0.113.0/24"),
    ("multicast", "224.0.0.0/4"),
    ("reserved", "240.0.0.0/4"),
)
_REFUSED_6: Final = (
    ("unspecified", "::/128"),
    ("loopback", "::1/128"),
    ("an IPv4 address in disguise", "::/96"),
    ("an IPv4 address in disguise", "::ffff:0:0/96"),
    ("an IPv4 address in disguise", "::ffff:0:0:0/96"),
    ("private", "64:ff9b:1::/48"),
    ("discarded", "100::/64"),
    ("a Teredo tunnel", "2001::/32"),
    ("reserved", "2001::/23"),
    ("reserved for documentation", "2001:db8::/32"),
    ("a 6to4 tunnel", "2002::/16"),
    ("reserved for documentation", "3fff::/20"),
    ("reserved", "5f00::/16"),
    ("private", "fc00::/7"),
    ("link-local", "fe80::/10"),
    ("private", "fec0::/10"),
    ("multicast", "ff00::/8"),
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_GLOBAL_6: Final = IPv6Network("2000::/3")
_TABLES: Final[dict[int, tuple[tuple[str, Network], ...]]] = {
    4: tuple((kind, IPv4Network(text)) for kind, text in _REFUSED_4),
    6: tuple((kind, IPv6Network(text)) for kind, text in _REFUSED_6),
}

# fmt: off
BAD_PORTS: Final = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})
# fmt: on
"""Ports of other protocols, which browsers refuse too (WHATWG Fetch, section 2.9, port blocking)."""


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """The limit on addresses, less the networks that an operator allows."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def compile(cls, networks: tuple[str, ...]) -> Self:
        """A guard that lets these networks (CIDR form, or one address) pass; raises SettingsError."""
        return cls(tuple(_network(text) for text in networks))

    def refusal(self, address: str) -> str:
        """What kind of address it is if it must not be fetched, such as `loopback`; empty if it may be."""
        parsed = _parse(address)
        if parsed is None:
            return "not an address"
        kind = _kind(parsed)
        if not kind or self._allows(parsed):
            return ""
        return kind

    def _allows(self, address: Address) -> bool:
        inner = embedded(address)
        return any(
            one is not None and one.version == network.version and one in network
            for one in (address, inner)
            for network in self.allowed
        )


def written_address(host: str) -> str:
    """The address that a host's name is or stands for (`localhost`, RFC 6761); empty for any other name."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return "127.0.0.1"
    return name if _parse(name) is not None else ""


def port_refused(port: int) -> bool:
    """Whether a port belongs to another protocol."""
    return port in BAD_PORTS


def embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address carries: mapped, compatible, NAT64, 6to4 or Teredo (the client's)."""
    if isinstance(address, IPv4Address):
        return None
    number = int(address)
    if number <= 1:  # unspecified and loopback, which carry nothing
        return None
    if address in _NAT64 or number >> 32 in {0, 0xFFFF, 0xFFFF << 16}:
        return IPv4Address(number & 0xFFFFFFFF)
    if number >> 112 == 0x2002:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if number >> 96 == 0x20010000:
        return IPv4Address(~number & 0xFFFFFFFF)
    return None


@lru_cache(maxsize=16_384)
def _parse(address: str) -> Address | None:
    try:
        return ip_address(address.partition("%")[0])
    except ValueError:
        return None


@lru_cache(maxsize=16_384)
def _kind(address: Address) -> str:
    """The kind of a special address; empty for one of the public internet."""
    inner = embedded(address)
    if str(address) in METADATA or (inner is not None and str(inner) in METADATA):
        return "a metadata service of a cloud"
    if inner is not None and address in _NAT64:
        return _kind(inner)
    for kind, network in _TABLES[address.version]:
        if address in network:
            return kind
    return "" if address.version == 4 or address in _GLOBAL_6 else "reserved"


def _network(text: str) -> Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise SettingsError(
            f"fetch.allow_networks has {text!r}, which is no network; write it as 10.0.0.0/8 or ::1/128"
        ) from error
