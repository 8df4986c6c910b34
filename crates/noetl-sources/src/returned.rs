//! Messages of a source that keeps nothing: what is to come again is kept here until then, and is gone
//! with the process.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::source::{Acknowledge, Delivery, Message, SourceError};

/// Messages that are to come again, with when.
#[derive(Clone, Default)]
pub(crate) struct Returned(Arc<Mutex<VecDeque<(Instant, Message)>>>);

impl Returned {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Message)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to so many of those whose time has come.
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

    /// A message with a handle that brings it back here.
    pub(crate) fn delivery(&self, message: Message) -> Delivery {
        let handle = Handle {
            message: message.clone(),
            returned: self.clone(),
            is_answered: AtomicBool::new(false),
        };
        Delivery::new(message, handle)
    }
}

struct Handle {
    message: Message,
    returned: Returned,
    is_answered: AtomicBool,
}

impl Handle {
    fn come_again(&self, after: Duration) {
        if !self.is_answered.swap(true, Ordering::AcqRel) {
            self.returned.lock().push_back((Instant::now() + after, self.message.clone()));
        }
    }
}

#[async_trait]
impl Acknowledge for Handle {
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

/// Nobody else would bring it again.
impl Drop for Handle {
    fn drop(&mut self) {
        self.come_again(Duration::ZERO);
    }
}
