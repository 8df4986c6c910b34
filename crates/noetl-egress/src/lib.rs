//! Egress policy: restricts the addresses that outgoing HTTP requests may reach.
//!
//! The author of a playbook names URLs that a worker then requests from inside a network, next to
//! services that trust every client that can reach them. A [`EgressPolicy`] defines the addresses that may
//! be reached. It filters the addresses that a name resolves to and passes only those to the
//! client, so the checked addresses are those the client connects to. It also checks every literal
//! address, in the request and in each redirect, because a client does not resolve those.
//!
//! The policy does not cover proxies: a proxy named in the environment resolves names itself.

mod address;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use crate::address::{CidrBlock, is_metadata, is_public, plain};

/// Addresses that may be reached without being listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DefaultAccess {
    /// All addresses, without restriction.
    Everything,
    /// All addresses except the metadata endpoints of clouds.
    #[default]
    NoMetadata,
    /// Only public addresses of the internet.
    Public,
    Nothing,
}

impl DefaultAccess {
    /// Values of the setting, by name.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("off", Self::Everything),
        ("metadata", Self::NoMetadata),
        ("private", Self::Public),
        ("listed", Self::Nothing),
    ];

    fn takes(self, address: IpAddr) -> bool {
        match self {
            Self::Everything => true,
            Self::NoMetadata => !is_metadata(address),
            Self::Public => is_public(address),
            Self::Nothing => false,
        }
    }
}

/// Egress policy. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy(Arc<PolicyRules>);

#[derive(Debug, Default)]
struct PolicyRules {
    reach: DefaultAccess,
    /// Names that may be reached whatever they resolve to, in lower case.
    names: Vec<AllowEntry>,
    blocks: Vec<CidrBlock>,
}

#[derive(Debug)]
enum AllowEntry {
    Name(String),
    /// Suffix of names, including its leading dot.
    Below(String),
}

/// An invalid entry of the list.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' must be a host name, an IP address, or a CIDR block such as 10.0.0.0/8")]
pub struct AllowListError(String);

/// Error of a request that the policy denies.
///
/// Does not contain the address of a name, which the caller may not be allowed to know.
#[derive(Debug, thiserror::Error)]
#[error("the egress policy of this process denies {host}")]
pub struct EgressDenied {
    host: String,
}

impl EgressPolicy {
    /// Creates a policy that allows the addresses in `reach` and those in `listed`: comma-separated
    /// names, `*.` with a suffix, addresses, and CIDR blocks.
    pub fn new(reach: DefaultAccess, listed: &str) -> Result<Self, AllowListError> {
        let mut rules = PolicyRules { reach, ..PolicyRules::default() };
        for entry in listed.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            if let Ok(block) = entry.parse() {
                rules.blocks.push(block);
                continue;
            }
            let (name, is_below) = match entry.strip_prefix("*.") {
                Some(name) => (name, true),
                None => (entry, false),
            };
            // A URL parses unusual spellings of an address, such as a decimal number, as an
            // address.
            let is_name = Url::parse(&format!("http://{name}/")).is_ok_and(|url| {
                url.domain().is_some_and(|domain| domain.eq_ignore_ascii_case(name))
            });
            if !is_name || name.contains('*') {
                return Err(AllowListError(entry.to_owned()));
            }
            let name = bare(name);
            rules.names.push(match is_below {
                true => AllowEntry::Below(format!(".{name}")),
                false => AllowEntry::Name(name),
            });
        }
        Ok(Self(Arc::new(rules)))
    }

    /// Returns `true` if the policy allows all addresses.
    pub fn is_off(&self) -> bool {
        self.0.reach == DefaultAccess::Everything
    }

    /// Checks a URL before it is requested. A name is checked again when it is resolved.
    pub fn check(&self, url: &Url) -> Result<(), EgressDenied> {
        // A URL parser recognizes an address in every spelling: decimal, octal, hexadecimal, and
        // shortened.
        let Some(host) = url.host_str() else { return Ok(()) };
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        let is_good = match literal {
            Ok(address) => self.takes(address),
            // If blocks are listed, the resolved address decides.
            Err(_) => {
                self.0.reach != DefaultAccess::Nothing
                    || !self.0.blocks.is_empty()
                    || self.lists(host)
            }
        };
        match is_good {
            true => Ok(()),
            false => Err(EgressDenied { host: host.to_owned() }),
        }
    }

    /// Configures a client to connect only to allowed addresses of a name. The caller must check
    /// each request with [`EgressPolicy::check`] and follow redirects with [`EgressPolicy::redirects`].
    ///
    /// The client sends no `Referer`, because the URL that redirected it can contain a secret.
    pub fn around(&self, client: ClientBuilder) -> ClientBuilder {
        let client = client.referer(false);
        match self.is_off() {
            true => client,
            false => client.dns_resolver(Arc::new(Guarded { policy: self.clone(), look_up })),
        }
    }

    /// Returns a redirect policy that follows up to `most` redirects and checks each of them.
    pub fn redirects(&self, most: usize) -> redirect::Policy {
        let policy = self.clone();
        redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > most {
                return attempt.error(TooMany(most));
            }
            match policy.check(attempt.url()) {
                Ok(()) => attempt.follow(),
                Err(denied) => attempt.error(denied),
            }
        })
    }

    fn lists(&self, name: &str) -> bool {
        let name = bare(name);
        self.0.names.iter().any(|listed| match listed {
            AllowEntry::Name(known) => *known == name,
            AllowEntry::Below(end) => name.ends_with(end.as_str()),
        })
    }

    fn takes(&self, address: IpAddr) -> bool {
        let inner = plain(address);
        self.0.reach.takes(address) || self.0.blocks.iter().any(|block| block.holds(inner))
    }
}

/// Returns the denial among the causes of a client error, if there is one.
pub fn refusal<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a EgressDenied> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|cause| cause.downcast_ref())
}

#[derive(Debug, thiserror::Error)]
#[error("the server redirected more than {0} times")]
struct TooMany(usize);

/// Normalizes a name for comparison: lower case, without the trailing dot of a fully qualified
/// name.
fn bare(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

type LookUp = fn(String) -> Resolving;

fn look_up(name: String) -> Resolving {
    Box::pin(async move {
        let addresses = tokio::net::lookup_host((name, 0)).await?;
        Ok(Box::new(addresses.collect::<Vec<_>>().into_iter()) as Addrs)
    })
}

/// Resolves names and returns only allowed addresses.
struct Guarded {
    policy: EgressPolicy,
    look_up: LookUp,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy.clone();
        let lookup = (self.look_up)(name.as_str().to_owned());
        Box::pin(async move {
            let name = name.as_str();
            let is_listed = policy.lists(name);
            let mut addresses: Vec<SocketAddr> = lookup.await?.collect();
            let is_there = !addresses.is_empty();
            addresses.retain(|address| is_listed || policy.takes(address.ip()));
            match addresses.is_empty() && is_there {
                true => Err(Box::new(EgressDenied { host: name.to_owned() }) as _),
                false => Ok(Box::new(addresses.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
