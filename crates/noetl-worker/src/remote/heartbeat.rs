//! Renews leases and receives cancellations.

use noetl_api::workers::HeartbeatRequest;
use noetl_api::{Id, work};
use noetl_model::ExponentialBackoff;
use noetl_work::LEASE_BATCH_MAX;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::leases::HeldLeases;
use super::line::{Line, LineState};
use super::link::{RETRY_FIRST, ServerLink, chain};
use super::metrics::WorkerEvent;

/// Heartbeats per lease duration while the worker leases commands. Several may be lost before a
/// lease expires, and cancellations arrive soon.
const PER_LEASE: u32 = 9;

/// Heartbeats per lease duration while the worker is idle, only to stay registered as alive.
const PER_LEASE_IDLE: u32 = 3;

/// Sends heartbeats over HTTP until `stop` is cancelled, except while the worker is connected.
pub(crate) async fn run(
    link: &ServerLink,
    line: &Line,
    leases: &HeldLeases,
    stop: CancellationToken,
) {
    loop {
        let per_lease = if leases.len() == 0 { PER_LEASE_IDLE } else { PER_LEASE };
        let pause = link.lease() / per_lease;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        if line.state() == LineState::Connected {
            continue;
        }
        let mut delays = ExponentialBackoff::new(RETRY_FIRST, pause.max(RETRY_FIRST)).delays();
        while !beat(link, leases).await {
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = stop.cancelled() => return,
            }
        }
    }
}

/// Sends one heartbeat. Returns `true` if the server accepted it.
async fn beat(link: &ServerLink, leases: &HeldLeases) -> bool {
    let commands = leases.commands();
    link.counters.set_running(commands.len());
    let mut batches: Vec<&[_]> = commands.chunks(LEASE_BATCH_MAX).collect();
    if batches.is_empty() {
        batches.push(&[]);
    }
    for batch in batches {
        let request = HeartbeatRequest {
            worker_id: link.name.clone(),
            commands: batch.iter().copied().map(Id::from).collect(),
        };
        let reply = match link.request(work::heartbeat(&request)).await {
            Ok(reply) => reply,
            Err(error) => {
                // `ServerLink::ask` has logged transient errors as an unavailable server.
                if !error.is_passing() {
                    warn!(error = chain(&error), "server rejected heartbeat, retrying");
                }
                return false;
            }
        };
        link.set_lease(reply.lease_seconds);
        for command in reply.cancel {
            leases.cancel(command.into());
        }
        for command in reply.lost {
            if leases.mark_lost(command.into()) {
                link.counters.count(WorkerEvent::Lost);
                info!(command.id = %command, "command reassigned to another worker");
            }
        }
    }
    true
}
