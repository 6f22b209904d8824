"""Which addresses and ports may be fetched."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.errors import SettingsError
from trawl.fetcher.addresses import AddressGuard, embedded, port_refused

CLOSED = AddressGuard()

REFUSED = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.1.2.3": "private",
    "100.64.0.1": "shared by carriers",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.1.1": "link-local",
    "169.254.169.254": "a metadata service of a cloud",
    "100.100.100.200": "a metadata service of a cloud",
    "168.63.129.16": "a metadata service of a cloud",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "reserved",
    "192.168.1.1": "private",
    "198.18.0.1": "reserved for benchmarks",
    "203.0.113.9": "reserved for documentation",
    "224.0.0.1": "multicast",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "an IPv4 address in disguise",
    "::ffff:127.0.0.1": "an IPv4 address in disguise",
    "::ffff:8.8.8.8": "an IPv4 address in disguise",
    "::ffff:a9fe:a9fe": "a metadata service of a cloud",
    "64:ff9b::127.0.0.1": "loopback",
    "64:ff9b::10.0.0.1": "private",
    "64:ff9b::a9fe:a9fe": "a metadata service of a cloud",
    "64:ff9b:1::1": "private",
    "2001:0:1::1": "a Teredo tunnel",
    "2002:7f00:1::": "a 6to4 tunnel",
    "2002:808:808::1": "a 6to4 tunnel",
    "2001:db8::1": "reserved for documentation",
    "fc00::1": "private",
    "fd00:ec2::254": "a metadata service of a cloud",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fec0::1": "private",
    "ff02::1": "multicast",
    "4000::1": "reserved",
    "nonsense": "not an address",
    "": "not an address",
}


@pytest.mark.parametrize(("address", "kind"), REFUSED.items())
def test_special_addresses_are_refused_by_kind(address: str, kind: str) -> None:
    assert CLOSED.refusal(address) == kind


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "2606:4700::1111", "64:ff9b::8.8.8.8"],
)
def test_addresses_of_the_public_internet_pass(address: str) -> None:
    assert CLOSED.refusal(address) == ""


@given(st.ip_addresses(v=4))
def test_every_address_that_python_calls_not_global_is_refused(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert CLOSED.refusal(str(address))


@given(st.sampled_from([text for text in REFUSED if "." in text and ":" not in text]).map(IPv4Address))
def test_no_ipv6_spelling_hides_a_refused_ipv4_address(address: IPv4Address) -> None:
    number = int(address)
    spellings = [
        IPv6Address(number),
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(0xFFFF << 48 | number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | number << 80),
        IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF)),
    ]
    for spelling in spellings:
        if spelling not in {IPv6Address("::"), IPv6Address("::1")}:
            assert embedded(spelling) == address
        assert CLOSED.refusal(str(spelling)), spelling


@given(st.ip_addresses(v=4), st.integers(8, 32))
def test_an_allowed_network_lets_exactly_its_addresses_pass(address: IPv4Address, bits: int) -> None:
    network = ip_network(f"{address}/{bits}", strict=False)
    guard = AddressGuard.compile((str(network),))
    assert guard.refusal(str(address)) == ""
    assert guard.refusal(f"::ffff:{address}") == ""
    for other in ("127.0.0.1", "10.0.0.1", "::1"):
        assert guard.refusal(other) == (
            "" if IPv6Address("::1") != other and _in(other, str(network)) else CLOSED.refusal(other)
        )


def _in(address: str, network: str) -> bool:
    return ":" not in address and IPv4Address(address) in ip_network(network)


@pytest.mark.parametrize("text", ["10.0.0.0/40", "localhost", "", "10.0.0.0/8,::1"])
def test_what_is_no_network_is_said(text: str) -> None:
    with pytest.raises(SettingsError, match="allow_networks"):
        AddressGuard.compile((text,))


def test_ports_of_other_protocols_are_refused() -> None:
    assert all(port_refused(port) for port in (0, 22, 25, 53, 110, 465, 587, 2049, 6000, 6667, 10080))
    assert not any(port_refused(port) for port in (80, 443, 3000, 8000, 8080, 8443, 65535))
