//! Lifetime of a control plane: its background tasks, and the signals that end them.

use std::future::Future;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Background tasks that end with the control plane. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lifetime {
    draining: CancellationToken,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Lifetime {
    /// Returns the signal to claim no more commands.
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Returns the signal for tasks to end.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Starts a task that ends soon after [`closing`](Self::closing) fires.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Signals the end and waits for every task. A task that panicked needs no cleanup.
    pub(crate) async fn end(&self) {
        self.draining.cancel();
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
