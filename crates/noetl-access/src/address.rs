//! Client address of a request.
//!
//! The client address is the peer of the connection. If the peer is a trusted proxy
//! (`NOETL_TRUSTED_PROXIES`), it is the last address in `X-Forwarded-For` that is not a trusted
//! proxy. The header is ignored on requests from other peers.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use http::HeaderMap;

const FORWARDED: &str = "x-forwarded-for";

/// A network in CIDR notation, such as `10.0.0.0/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Error for a text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither an address nor a network as 10.0.0.0/8")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.chars().take(80).collect());
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most),
            None => Some(most),
        };
        Ok(Self { address, prefix: prefix.ok_or_else(wrong)? })
    }
}

impl Network {
    fn holds(self, address: IpAddr) -> bool {
        let same = |ours: u128, theirs: u128, bits: u32| {
            let rest = bits - u32::from(self.prefix);
            rest == bits || (ours >> rest) == (theirs >> rest)
        };
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                same(ours.to_bits().into(), theirs.to_bits().into(), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => same(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }
}

/// Returns the client address under which a request is counted. An IPv6 address counts by its /64
/// network, because one host usually owns a whole /64.
pub fn client_address(proxies: &[Network], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    match forwarded(proxies, peer, headers) {
        IpAddr::V6(whole) => Ipv6Addr::from_bits(whole.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

fn forwarded(proxies: &[Network], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let is_proxy = |address: IpAddr| proxies.iter().any(|proxy| proxy.holds(address));
    let mut found = peer;
    // From the last hop to the first, while the hop before was a trusted proxy.
    let values = headers.get_all(FORWARDED).iter().rev();
    let hops = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    for hop in hops {
        if !is_proxy(found) {
            break;
        }
        match hop.trim().parse::<IpAddr>() {
            Ok(address) => found = address.to_canonical(),
            Err(_) => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn networks_are_read_and_hold_their_addresses() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().expect(network).holds(ip(address))
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.1.2.3", "10.1.2.3") && !holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe80::1"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "a", "10.0.0.0/-1", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_may_forward_a_client_address() {
        let proxies = ["10.0.0.0/8".parse().expect("a network")];
        let from = |peer: &str, said: &[&'static str]| {
            let said = said
                .iter()
                .map(|value| (FORWARDED.parse().expect("a name"), HeaderValue::from_static(value)));
            forwarded(&proxies, ip(peer), &said.collect()).to_string()
        };
        assert_eq!(from("1.1.1.1", &["2.2.2.2"]), "1.1.1.1", "anybody can write a header");
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &["2.2.2.2"]), "2.2.2.2");
        assert_eq!(from("10.0.0.1", &["9.9.9.9, 2.2.2.2, 10.0.0.2"]), "2.2.2.2");
        assert_eq!(from("10.0.0.1", &["9.9.9.9", "2.2.2.2, 10.0.0.2"]), "2.2.2.2");
        assert_eq!(from("10.0.0.1", &["9.9.9.9, nonsense"]), "10.0.0.1");
    }
}
