//! CIDR blocks, and the addresses of cloud metadata endpoints.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A CIDR block: the addresses that share a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CidrBlock {
    first: IpAddr,
    bits: u32,
}

impl CidrBlock {
    const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(first: [u16; 8], bits: u32) -> Self {
        let [a, b, c, d, e, f, g, h] = first;
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits }
    }

    /// Returns `true` if the block contains the address.
    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = u32::from(first) ^ u32::from(address);
                differs.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = u128::from(first) ^ u128::from(address);
                differs.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for CidrBlock {
    type Err = ();

    /// Parses a block such as `10.0.0.0/8`, or a single address.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, bits) = match text.split_once('/') {
            Some((first, bits)) => (first, Some(bits.parse::<u32>().map_err(drop)?)),
            None => (text, None),
        };
        let first = first.trim_start_matches('[').trim_end_matches(']');
        let first: IpAddr = first.parse().map_err(drop)?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        match bits.unwrap_or(most) {
            bits if bits > most => Err(()),
            // An IPv4-mapped block contains the addresses it maps to.
            bits => match (first, plain(first)) {
                (IpAddr::V6(_), IpAddr::V4(inner)) => {
                    let bits = bits.checked_sub(96).ok_or(())?;
                    Ok(Self { first: inner.into(), bits })
                }
                (_, first) => Ok(Self { first, bits }),
            },
        }
    }
}

/// Metadata endpoints of clouds, which give a machine its identity and credentials: link-local
/// addresses, and the other addresses that clouds use.
const METADATA: [CidrBlock; 8] = [
    CidrBlock::v4(169, 254, 0, 0, 16),
    CidrBlock::v4(100, 100, 100, 200, 32),
    CidrBlock::v4(168, 63, 129, 16, 32),
    CidrBlock::v4(192, 0, 0, 192, 32),
    CidrBlock::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    CidrBlock::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128),
    CidrBlock::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
    CidrBlock::v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128),
];

/// Addresses that are not public: loopback, private networks, multicast, and those reserved for
/// documentation, tests, and future use.
const OWN: [CidrBlock; 24] = [
    CidrBlock::v4(0, 0, 0, 0, 8),
    CidrBlock::v4(10, 0, 0, 0, 8),
    CidrBlock::v4(100, 64, 0, 0, 10),
    CidrBlock::v4(127, 0, 0, 0, 8),
    CidrBlock::v4(172, 16, 0, 0, 12),
    CidrBlock::v4(192, 0, 0, 0, 24),
    CidrBlock::v4(192, 0, 2, 0, 24),
    CidrBlock::v4(192, 88, 99, 0, 24),
    CidrBlock::v4(192, 168, 0, 0, 16),
    CidrBlock::v4(198, 18, 0, 0, 15),
    CidrBlock::v4(198, 51, 100, 0, 24),
    CidrBlock::v4(203, 0, 113, 0, 24),
    CidrBlock::v4(224, 0, 0, 0, 4),
    CidrBlock::v4(240, 0, 0, 0, 4),
    CidrBlock::v6([0, 0, 0, 0, 0, 0, 0, 0], 127),
    CidrBlock::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
    CidrBlock::v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64),
    // Teredo: embeds the address of a machine behind a NAT.
    CidrBlock::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
    CidrBlock::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    CidrBlock::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    CidrBlock::v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
    CidrBlock::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    CidrBlock::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    CidrBlock::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// Returns `true` if the address is a metadata endpoint of a cloud.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    METADATA.iter().any(|block| block.holds(plain(address)))
}

/// Returns `true` if the address can be public.
pub(crate) fn is_public(address: IpAddr) -> bool {
    !is_metadata(address) && !OWN.iter().any(|block| block.holds(plain(address)))
}

/// Returns the address that is finally reached: IPv6 can embed an IPv4 address in four ways.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(long) = address else { return address };
    let parts = long.segments();
    let inner = match parts {
        // IPv4-mapped, and translated by NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        // IPv4-compatible (deprecated); `::` and `::1` have other meanings.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => (high, low),
        // 6to4, through a relay.
        [0x2002, high, low, ..] => (high, low),
        _ => return address,
    };
    Ipv4Addr::from(u32::from(inner.0) << 16 | u32::from(inner.1)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn private_addresses_are_recognized_in_every_notation() {
        for text in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "192.0.0.192",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001::1",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "fec0::1",
            "2001:db8::1",
            "100::1",
        ] {
            assert!(!is_public(address(text)), "{text}");
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "169.253.255.255",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(is_public(address(text)), "{text}");
        }
    }

    #[test]
    fn metadata_endpoints_are_recognized_in_every_notation() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::a9fe:a9fe",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
        ] {
            assert!(is_metadata(address(text)), "{text}");
        }
        for text in ["127.0.0.1", "10.0.0.1", "100.100.100.201", "::1", "fd00:ec2::253"] {
            assert!(!is_metadata(address(text)), "{text}");
        }
    }

    #[test]
    fn cidr_blocks_are_parsed_and_malformed_ones_rejected() {
        let contains = |block: &str, text: &str| {
            block.parse::<CidrBlock>().expect("a block").holds(plain(address(text)))
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.4"));
        assert!(
            contains("10.1.2.3", "::ffff:10.1.2.3") && contains("::ffff:10.0.0.0/104", "10.1.2.3")
        );
        assert!(contains("0.0.0.0/0", "1.2.3.4") && !contains("0.0.0.0/0", "2a00::1"));
        assert!(
            contains("::/0", "2a00::1")
                && contains("fd00::/8", "fd12::1")
                && contains("[::1]", "::1")
        );
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::1/129", "10.0.0.0/-1", "10.0.0.0/", "a/8"] {
            assert!(text.parse::<CidrBlock>().is_err(), "{text}");
        }
    }
}
