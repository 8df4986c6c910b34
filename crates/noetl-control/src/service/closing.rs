//! How a control plane ends.

use super::Control;

impl Control {
    /// Hands out no further command. What runs may still end and be reported.
    pub fn drain(&self) {
        self.dispatch.close();
        self.draining.cancel();
    }

    /// Commits what was submitted and stops. Commands that still run are found again at the next
    /// start.
    pub async fn close(&self) {
        self.drain();
        self.closing.cancel();
        for task in self.tasks.lock().await.drain(..) {
            // One that panicked has nothing left to do.
            let _ = task.await;
        }
        self.leaving.cancel();
        if let Some(identity) = self.identity.lock().await.take() {
            let _ = identity.await;
        }
    }
}
