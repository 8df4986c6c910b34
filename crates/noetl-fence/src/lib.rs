//! Which addresses outgoing HTTP may reach.
//!
//! Whoever writes a playbook names addresses that a worker then asks, from where the worker stands:
//! inside a network, beside services that trust whoever can reach them. A [`Fence`] says which of
//! them may be asked. It looks at the addresses that a name resolved to and hands the client these
//! and no others, so what was looked at is what is connected to; at each address that is written as
//! one, in the request and in every redirect, because a client resolves none of those.
//!
//! It does not look at what a proxy does: one that the environment names resolves by itself.

mod address;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use crate::address::{Block, is_metadata, is_public, plain};

/// What may be reached without being listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Everything.
    Everything,
    /// Everything but the places where a cloud tells its machines who they are.
    #[default]
    NoMetadata,
    /// Addresses of the internet only.
    Public,
    Nothing,
}

impl Reach {
    /// The words for it, as a setting has them.
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

/// What may be reached. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Fence(Arc<Rules>);

#[derive(Debug, Default)]
struct Rules {
    reach: Reach,
    /// Names that may be reached wherever they are, in lower case.
    names: Vec<Listed>,
    blocks: Vec<Block>,
}

#[derive(Debug)]
enum Listed {
    Name(String),
    /// Whatever ends with it, its dot included.
    Below(String),
}

/// An entry of a list that is none.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no host name, no address and no block of addresses such as 10.0.0.0/8")]
pub struct EntryError(String);

/// Why a request is not sent.
///
/// It does not say which address a name has: whoever asks may not know.
#[derive(Debug, thiserror::Error)]
#[error("{host} is behind the fence of this process")]
pub struct Fenced {
    host: String,
}

impl Fence {
    /// A fence that lets through what `reach` says and what is listed besides: names, `*.` and
    /// what they end with, addresses, blocks of addresses; commas part them.
    pub fn new(reach: Reach, listed: &str) -> Result<Self, EntryError> {
        let mut rules = Rules { reach, ..Rules::default() };
        for entry in listed.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            if let Ok(block) = entry.parse() {
                rules.blocks.push(block);
                continue;
            }
            let (name, is_below) = match entry.strip_prefix("*.") {
                Some(name) => (name, true),
                None => (entry, false),
            };
            // An address that is written as no address is normally written is one to a URL.
            let is_name = Url::parse(&format!("http://{name}/")).is_ok_and(|url| {
                url.domain().is_some_and(|domain| domain.eq_ignore_ascii_case(name))
            });
            if !is_name || name.contains('*') {
                return Err(EntryError(entry.to_owned()));
            }
            let name = bare(name);
            rules.names.push(match is_below {
                true => Listed::Below(format!(".{name}")),
                false => Listed::Name(name),
            });
        }
        Ok(Self(Arc::new(rules)))
    }

    /// Whether everything may be reached.
    pub fn is_off(&self) -> bool {
        self.0.reach == Reach::Everything
    }

    /// Looks at an address before it is asked. A name is looked at again when it is resolved.
    pub fn check(&self, url: &Url) -> Result<(), Fenced> {
        // A URL knows an address in each of the ways one is written: decimal, octal, hex, short.
        let Some(host) = url.host_str() else { return Ok(()) };
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        let is_good = match literal {
            Ok(address) => self.takes(address),
            // Where blocks are listed, what a name resolves to decides.
            Err(_) => {
                self.0.reach != Reach::Nothing || !self.0.blocks.is_empty() || self.lists(host)
            }
        };
        match is_good {
            true => Ok(()),
            false => Err(Fenced { host: host.to_owned() }),
        }
    }

    /// A client that connects to nothing behind the fence: names by what they resolve to. Requests
    /// have to be looked at with [`Fence::check`] before they are sent, and redirects to be followed
    /// by [`Fence::redirects`].
    ///
    /// The client sends no `Referer`, because the URL that redirected it can contain a secret.
    pub fn around(&self, client: ClientBuilder) -> ClientBuilder {
        let client = client.referer(false);
        match self.is_off() {
            true => client,
            false => client.dns_resolver(Arc::new(Guarded { fence: self.clone(), look_up })),
        }
    }

    /// Follows up to `most` redirects, none of them behind the fence.
    pub fn redirects(&self, most: usize) -> redirect::Policy {
        let fence = self.clone();
        redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > most {
                return attempt.error(TooMany(most));
            }
            match fence.check(attempt.url()) {
                Ok(()) => attempt.follow(),
                Err(fenced) => attempt.error(fenced),
            }
        })
    }

    fn lists(&self, name: &str) -> bool {
        let name = bare(name);
        self.0.names.iter().any(|listed| match listed {
            Listed::Name(known) => *known == name,
            Listed::Below(end) => name.ends_with(end.as_str()),
        })
    }

    fn takes(&self, address: IpAddr) -> bool {
        let inner = plain(address);
        self.0.reach.takes(address) || self.0.blocks.iter().any(|block| block.holds(inner))
    }
}

/// The refusal among the causes of an error of a client.
pub fn refusal<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Fenced> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|cause| cause.downcast_ref())
}

#[derive(Debug, thiserror::Error)]
#[error("it redirected more than {0} times")]
struct TooMany(usize);

/// A name as it is compared: its last dot says only that it is whole.
fn bare(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

type LookUp = fn(String) -> Resolving;

fn look_up(name: String) -> Resolving {
    Box::pin(async move {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
    })
}

/// Resolves names to what of their addresses is before the fence.
struct Guarded {
    fence: Fence,
    look_up: LookUp,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let fence = self.fence.clone();
        let found = (self.look_up)(name.as_str().to_owned());
        Box::pin(async move {
            let name = name.as_str();
            let is_listed = fence.lists(name);
            let mut found: Vec<SocketAddr> = found.await?.collect();
            let is_there = !found.is_empty();
            found.retain(|address| is_listed || fence.takes(address.ip()));
            match found.is_empty() && is_there {
                true => Err(Box::new(Fenced { host: name.to_owned() }) as _),
                false => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
