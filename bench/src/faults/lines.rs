//! Lines between two that can be cut: nothing passes, and nobody is told.

use std::net::SocketAddr;

use crate::Failure;
use crate::hosts::Hosts;
use crate::relay::Relay;

/// A line that can be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    ServerToDatabase,
    ServerToNats,
    WorkerToServer,
    WorkerToNats,
}

impl Line {
    /// The hosts at its ends.
    const fn ends(self) -> (&'static str, &'static str) {
        match self {
            Self::ServerToDatabase => ("server-1", "postgres"),
            Self::ServerToNats => ("server-1", "nats"),
            Self::WorkerToServer => ("worker-3", "server-2"),
            Self::WorkerToNats => ("worker-3", "nats"),
        }
    }
}

/// All of them.
pub(crate) enum Lines {
    /// Between hosts, whose packets are dropped.
    Hosts(Hosts),
    /// Through this process, in the order of [`Line`]: all that can be had without rights.
    Relays([Relay; 4]),
}

impl Lines {
    pub(crate) async fn new(
        hosts: Option<Hosts>,
        database: SocketAddr,
        nats: SocketAddr,
        server: SocketAddr,
    ) -> Result<Self, Failure> {
        Ok(match hosts {
            Some(hosts) => Self::Hosts(hosts),
            None => Self::Relays([
                Relay::to(database).await?,
                Relay::to(nats).await?,
                Relay::to(server).await?,
                Relay::to(nats).await?,
            ]),
        })
    }

    /// Where whoever uses a line finds what is at its other end.
    pub(crate) fn by(&self, line: Line, target: SocketAddr) -> SocketAddr {
        match self {
            Self::Hosts(_) => target,
            Self::Relays(relays) => SocketAddr::new(target.ip(), relays[line as usize].port),
        }
    }

    /// Cuts a line, or mends it.
    pub(crate) async fn cut(&self, line: Line, is_cut: bool) -> Result<(), Failure> {
        let (one, other) = line.ends();
        match self {
            Self::Hosts(hosts) if is_cut => hosts.cut(one, &[other]).await,
            Self::Hosts(hosts) => hosts.mend(one, &[other]).await,
            Self::Relays(relays) => {
                relays[line as usize].cut(is_cut);
                Ok(())
            }
        }
    }

    /// The hosts, if everything has one of its own.
    pub(crate) fn hosts(&self) -> Option<&Hosts> {
        match self {
            Self::Hosts(hosts) => Some(hosts),
            Self::Relays(_) => None,
        }
    }
}
