//! Source for notifications of a channel, delivered only while connected.
//!
//! The server stores no notifications for disconnected clients, so acks have no effect there.
//! Nacked messages wait in memory and are lost if the process dies.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Map, Value};
use noetl_tools::NotifyHandling;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_postgres::{Client, Notification};

use super::{asked, connect, quoted};
use crate::redelivery::RedeliveryQueue;
use crate::source::{Delivery, Message, Source, SourceError};

/// Notifications buffered in this process. Further ones wait at the server.
const CAPACITY: usize = 4096;

/// Nominal ack deadline. This source enforces none.
const ACK_WAIT: Duration = Duration::from_secs(3600);

/// Interval of health checks on an idle connection.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

pub(super) struct ChannelSource {
    client: Client,
    /// Distinguishes this connection's notifications from those of others.
    session: String,
    heard: Mutex<NotificationStream>,
    returned: RedeliveryQueue,
}

struct NotificationStream {
    receiver: mpsc::Receiver<Notification>,
    count: u64,
    alive_at: Instant,
}

impl ChannelSource {
    pub(super) async fn open(settings: &Map, channel: &str) -> Result<Self, SourceError> {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let client = connect(settings, NotifyHandling::All(sender)).await?;
        // The server has processed the LISTEN when this returns.
        let listen = format!("listen {}", quoted(channel));
        asked("failed to listen on the channel", client.batch_execute(&listen)).await?;
        let begun = "select pg_backend_pid() || '-' || extract(epoch from clock_timestamp())";
        let row = asked("the session is not known", client.query_one(begun, &[])).await?;
        let heard = NotificationStream { receiver, count: 0, alive_at: Instant::now() };
        Ok(Self {
            client,
            session: row.get(0),
            heard: Mutex::new(heard),
            returned: RedeliveryQueue::default(),
        })
    }

    fn message(&self, heard: &mut NotificationStream, notification: &Notification) -> Message {
        heard.count += 1;
        let metadata = Map::from_iter([
            ("channel".to_owned(), Value::from(notification.channel())),
            ("process_id".to_owned(), Value::from(notification.process_id())),
        ]);
        Message {
            // Notifications have no ID, and two with equal content are distinct.
            id: format!("{}-{}", self.session, heard.count),
            body: notification.payload().to_owned().into(),
            headers: Vec::new(),
            attributes: Map::new(),
            metadata,
            ack_id: None,
        }
    }
}

fn lost() -> SourceError {
    SourceError::Away("the connection to the database is lost".to_owned())
}

#[async_trait]
impl Source for ChannelSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut heard = self.heard.lock().await;
        let mut messages = self.returned.due(Instant::now(), most);
        if messages.is_empty() {
            match tokio::time::timeout(wait, heard.receiver.recv()).await {
                Ok(Some(notification)) => messages.push(self.message(&mut heard, &notification)),
                Ok(None) => return Err(lost()),
                Err(_) if heard.alive_at.elapsed() >= ALIVE_EVERY => {
                    asked("the connection does not respond", self.client.batch_execute("")).await?;
                    heard.alive_at = Instant::now();
                }
                Err(_) => {}
            }
        }
        while messages.len() < most {
            let Ok(notification) = heard.receiver.try_recv() else { break };
            messages.push(self.message(&mut heard, &notification));
        }
        Ok(messages.into_iter().map(|message| self.returned.delivery(message)).collect())
    }

    fn keeps(&self) -> bool {
        false
    }

    fn ack_wait(&self) -> Duration {
        ACK_WAIT
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        Ok(None)
    }

    async fn close(&self) {
        let _ = asked("failed to unlisten", self.client.batch_execute("unlisten *")).await;
    }
}
