//! What happens to everybody at once: the database goes away, and the bus does.

use std::sync::Arc;
use std::time::Duration;

use super::fault::Fault;
use super::scene::Scene;

/// What it is drawn from.
const WEATHER: [Fault; 4] = [Fault::Outage, Fault::BusAway, Fault::BusMute, Fault::BusWiped];

pub(crate) async fn run(scene: Arc<Scene>) {
    loop {
        tokio::time::sleep(Duration::from_secs(4)).await;
        match scene.fault_in("weather", &WEATHER, 8) {
            Some(Fault::Outage) => {
                let lasts = scene.millis(50, 60_000);
                scene.note("weather", &format!("  for {} ms", lasts.as_millis()));
                scene.set_outage(lasts);
            }
            Some(Fault::BusAway) => {
                scene.bus.set_connected(false);
                tokio::time::sleep(scene.millis(50, 30_000)).await;
                scene.bus.set_connected(true);
            }
            Some(Fault::BusMute) => {
                let answers = usize::try_from(scene.between(0, 20)).unwrap_or_default();
                scene.bus.leave_after(answers);
                tokio::time::sleep(scene.millis(500, 30_000)).await;
                scene.bus.set_connected(true);
            }
            Some(Fault::BusWiped) => scene.stream.delete(),
            Some(_) | None => {}
        }
    }
}
