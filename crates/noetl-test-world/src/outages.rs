//! Outages of the database and the bus, which affect all processes at once.

use std::sync::Arc;
use std::time::Duration;

use super::fault::Fault;
use super::scene::Scene;

/// Kinds of outages to draw from.
const OUTAGES: [Fault; 4] = [Fault::Outage, Fault::BusAway, Fault::BusMute, Fault::BusWiped];

pub(crate) async fn run(scene: Arc<Scene>) {
    loop {
        tokio::time::sleep(Duration::from_secs(4)).await;
        match scene.fault_in("outages", &OUTAGES, 8) {
            Some(Fault::Outage) => {
                let lasts = scene.millis(50, 60_000);
                scene.note("outages", &format!("  for {} ms", lasts.as_millis()));
                scene.set_outage(lasts);
            }
            Some(Fault::BusAway) => {
                scene.bus.set_connected(false);
                tokio::time::sleep(scene.millis(50, 30_000)).await;
                scene.bus.set_connected(true);
            }
            Some(Fault::BusMute) => {
                let acks = usize::try_from(scene.between(0, 20)).unwrap_or_default();
                scene.bus.leave_after(acks);
                tokio::time::sleep(scene.millis(500, 30_000)).await;
                scene.bus.set_connected(true);
            }
            Some(Fault::BusWiped) => scene.stream.delete(),
            Some(_) | None => {}
        }
    }
}
