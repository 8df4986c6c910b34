//! Consuming from the in-memory bus.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{AWAY, MemoryStream};
use crate::{CommandConsumer, Delivery, EventStream, ReadError};

impl MemoryStream {
    /// Returns the messages available to these consumers now, at most `max`.
    fn available(
        &self,
        stream: &str,
        readers: &[String],
        max: usize,
    ) -> Result<Vec<Delivery>, ReadError> {
        let mut state = self.state();
        let known = state.streams.iter_mut().find(|known| known.settings.name == stream);
        let known = known.ok_or(ReadError::NoReader)?;
        if readers.is_empty() || !readers.iter().all(|reader| known.has_reader(reader)) {
            return Err(ReadError::NoReader);
        }
        let mut deliveries = Vec::new();
        for reader in readers {
            while deliveries.len() < max {
                let Some((index, message)) = known.give(reader) else { break };
                let receipt = format!("{index} {reader}");
                deliveries.push(Delivery {
                    subject: message.subject,
                    payload: message.payload,
                    receipt,
                });
            }
        }
        Ok(deliveries)
    }

    fn answer_all(&self, receipts: &[String], is_done: bool) {
        for receipt in receipts {
            let Some((index, reader)) = receipt.split_once(' ') else { continue };
            let Ok(index) = index.parse() else { continue };
            self.answer(reader, index, is_done);
        }
    }
}

#[async_trait]
impl CommandConsumer for MemoryStream {
    async fn next(
        &self,
        stream: &str,
        readers: &[String],
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, ReadError> {
        let until = Instant::now() + wait;
        let (mut published, mut back) = (self.published.subscribe(), self.given_back.subscribe());
        let mut connected = self.connected.subscribe();
        loop {
            if !self.is_connected() {
                return Err(ReadError::Away(AWAY.to_owned()));
            }
            let deliveries = self.available(stream, readers, max)?;
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            tokio::select! {
                // `self` owns the senders and outlives the call, so `changed` cannot fail.
                _ = published.changed() => {}
                _ = back.changed() => {}
                _ = connected.changed() => {}
                () = tokio::time::sleep_until(until) => return Ok(Vec::new()),
            }
        }
    }

    async fn done(&self, receipts: &[String]) {
        self.answer_all(receipts, true);
    }

    async fn nack(&self, receipts: &[String]) {
        self.answer_all(receipts, false);
    }
}
