//! In-memory redelivery for sources that store no messages. Nacked messages are lost if the process
//! dies.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::source::{Delivery, DeliveryAck, Message, SourceError};

/// Nacked messages with the time of their redelivery.
#[derive(Clone, Default)]
pub(crate) struct RedeliveryQueue(Arc<Mutex<VecDeque<(Instant, Message)>>>);

impl RedeliveryQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Message)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns up to `most` messages whose redelivery time has passed.
    pub(crate) fn due(&self, now: Instant, most: usize) -> Vec<Message> {
        let mut all = self.lock();
        let mut due = Vec::new();
        for _ in 0..all.len() {
            match all.pop_front() {
                Some((at, message)) if at <= now && due.len() < most => due.push(message),
                Some(later) => all.push_back(later),
                None => break,
            }
        }
        due
    }

    /// Returns a delivery whose handle puts the message back here on a nack.
    pub(crate) fn delivery(&self, message: Message) -> Delivery {
        let handle = RedeliveryAck {
            message: message.clone(),
            returned: self.clone(),
            is_answered: AtomicBool::new(false),
        };
        Delivery::new(message, handle)
    }
}

struct RedeliveryAck {
    message: Message,
    returned: RedeliveryQueue,
    is_answered: AtomicBool,
}

impl RedeliveryAck {
    fn come_again(&self, after: Duration) {
        if !self.is_answered.swap(true, Ordering::AcqRel) {
            self.returned.lock().push_back((Instant::now() + after, self.message.clone()));
        }
    }
}

#[async_trait]
impl DeliveryAck for RedeliveryAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.is_answered.store(true, Ordering::Release);
        Ok(())
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        self.come_again(after);
        Ok(())
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.ack().await
    }

    async fn extend(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Redelivers a message that was neither acked nor nacked, because no other party would.
impl Drop for RedeliveryAck {
    fn drop(&mut self) {
        self.come_again(Duration::ZERO);
    }
}
