"""What kind of place an address is: every special range is known, in every way of hiding it."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.outbound.address import place

PUBLIC = ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001:830::200e"]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::192.168.0.1",
]
FORBIDDEN = [
    "169.254.169.254",
    "169.254.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fd00:ec2::254",
    "0.0.0.0",  # noqa: S104 - nothing is bound to it here
    "0.1.2.3",
    "::",
    "::ffff:0.0.0.0",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "ff02::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "::127.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "fec0::1",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1 ",
    "",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_public(address: str) -> None:
    """Neighbours of special ranges are no part of them."""
    assert place(address) == "public"


@pytest.mark.parametrize("address", PRIVATE)
def test_our_own_networks_are_private(address: str) -> None:
    """Loopback, private, CGNAT and unique local, also inside an IPv6 address."""
    assert place(address) == "private"


@pytest.mark.parametrize("address", FORBIDDEN)
def test_nobody_calls_these(address: str) -> None:
    """Metadata, link-local, unspecified, multicast, reserved, retired tunnels, and what is no plain address."""
    assert place(address) == "forbidden"


@given(st.ip_addresses(v=4))
def test_what_we_call_public_the_standard_library_calls_global(address: IPv4Address) -> None:
    """Our table is never more generous than Python's."""
    if place(str(address)) == "public":
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=6))
def test_the_same_for_ipv6(address: IPv6Address) -> None:
    """The part that is handed out, and nothing else."""
    if place(str(address)) == "public":
        assert (address.ipv4_mapped or address).is_global


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_as_itself(address: IPv4Address) -> None:
    """Mapped and NAT64 addresses hide nothing."""
    number = int(address)
    mapped, translated = ip_address((0xFFFF << 32) + number), IPv6Address((0x64FF9B << 96) + number)

    assert place(str(mapped)) == place(str(address)) == place(str(translated))
