//! Source for MQTT topics, using a persistent session.
//!
//! The broker stores unacked messages for the client ID and redelivers them on the next connection.
//! It does not redeliver on the same connection, so nacked messages wait in memory until then. MQTT
//! messages have no ID; the source assigns one and remembers it while the process runs.

mod ids;
mod settings;
mod tunnel;
mod v4;
mod v5;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Shared, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use noetl_model::{Map, Value};
use noetl_playbook::subscription::Subscription;
use rumqttc::QoS;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;

use self::ids::MessageIds;
use self::settings::MqttSettings;
use crate::source::{Delivery, DeliveryAck, Message, Source, SourceError, SourceFactory};

/// Time the broker has to respond.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Nominal ack deadline. This source enforces none.
const ACK_WAIT: Duration = Duration::from_secs(3600);

/// Messages buffered in this process. Exceeds the number of packet IDs, and so the number of
/// messages that can await an ack. Only messages without acks (`qos: 0`) can exceed it, and are
/// dropped.
const CAPACITY: usize = 1 << 16;

/// Opens sources of kind `mqtt`.
#[derive(Debug, Clone, Default)]
pub struct Mqtt {
    ids: MessageIds,
}

#[async_trait]
impl SourceFactory for Mqtt {
    fn kind(&self) -> &'static str {
        "mqtt"
    }

    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let settings = MqttSettings::read(settings, &subscription.path)?;
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let queue = MessageQueue {
            sender,
            acks: PendingAcks::default(),
            ids: self.ids.clone(),
            client: settings.client_id.clone(),
        };
        let acks = queue.acks.clone();
        let opening = async {
            match settings.version {
                5 => v5::open(&settings, queue).await.map(Client::V5),
                _ => v4::open(&settings, queue).await.map(Client::V4),
            }
        };
        let client = tokio::time::timeout(TIMEOUT, opening).await;
        let client = client
            .map_err(|_| SourceError::Away("the MQTT broker does not answer".to_owned()))??;
        let acker = Arc::new(Acker {
            client,
            acks,
            redeliveries: Shared::default(),
            ids: self.ids.clone(),
            name: settings.client_id,
        });
        Ok(Arc::new(SessionSource { receiver: Mutex::new(receiver), acker }))
    }
}

/// A received message, independent of the protocol version.
#[derive(Debug, Clone)]
struct ReceivedMessage {
    packet: u16,
    qos: QoS,
    message: Message,
}

/// Contents of a PUBLISH packet, independent of the protocol version.
struct Published {
    is_repeated: bool,
    is_retained: bool,
    packet: u16,
    qos: QoS,
    topic: String,
    payload: Bytes,
    headers: Vec<(String, String)>,
    attributes: Map,
}

/// Queue from a connection to the source.
struct MessageQueue {
    sender: mpsc::Sender<ReceivedMessage>,
    acks: PendingAcks,
    ids: MessageIds,
    client: String,
}

impl MessageQueue {
    /// Assigns an ID to a message and queues it.
    fn enqueue(&self, published: Published) {
        let Published { packet, qos, topic, payload, headers, mut attributes, .. } = published;
        let sender_id = headers.iter().find_map(|(name, id)| {
            let is_name = ["message-id", "ce-id"].iter().any(|own| name.eq_ignore_ascii_case(own));
            (is_name && !id.trim().is_empty()).then(|| id.trim().to_owned())
        });
        let id = sender_id.unwrap_or_else(|| {
            let is_kept = qos != QoS::AtMostOnce;
            let repeated = (is_kept && published.is_repeated).then_some(packet);
            self.ids.id_of(&self.client, is_kept.then_some(packet), repeated, &topic, &payload)
        });
        let metadata = Map::from_iter([
            ("topic".to_owned(), Value::from(topic.as_str())),
            ("qos".to_owned(), Value::from(qos as u8)),
            ("retain".to_owned(), Value::from(published.is_retained)),
        ]);
        for (name, value) in &headers {
            attributes.entry(name.clone()).or_insert_with(|| Value::from(value.as_str()));
        }
        let message = Message { id, body: payload, headers, attributes, metadata, ack_id: None };
        // The channel has room for every message that is acked.
        let _ = self.sender.try_send(ReceivedMessage { packet, qos, message });
    }
}

/// Acks waiting to be sent, by packet ID, and the reason once the connection has ended.
#[derive(Clone, Default)]
struct PendingAcks(Arc<Shared<PendingPackets>>);

#[derive(Default)]
struct PendingPackets {
    packets: HashMap<u16, oneshot::Sender<()>>,
    ended: Option<String>,
}

impl PendingAcks {
    fn lock(&self) -> MutexGuard<'_, PendingPackets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that resolves once the ack of a packet is sent.
    fn wait_for(&self, packet: u16) -> Result<oneshot::Receiver<()>, SourceError> {
        let mut waiting = self.lock();
        if let Some(reason) = &waiting.ended {
            return Err(SourceError::Away(reason.clone()));
        }
        let (sender, receiver) = oneshot::channel();
        waiting.packets.insert(packet, sender);
        Ok(receiver)
    }

    fn sent(&self, packet: u16) {
        if let Some(sender) = self.lock().packets.remove(&packet) {
            let _ = sender.send(());
        }
    }

    /// Records the end of the connection and fails all waiting acks.
    fn end(&self, reason: String) {
        let mut waiting = self.lock();
        waiting.packets.clear();
        waiting.ended = Some(reason);
    }

    fn ended(&self) -> SourceError {
        let reason = self.lock().ended.clone();
        SourceError::Away(reason.unwrap_or_else(|| "the connection is over".to_owned()))
    }
}

enum Client {
    V4(rumqttc::AsyncClient),
    V5(rumqttc::v5::AsyncClient),
}

struct Acker {
    client: Client,
    acks: PendingAcks,
    redeliveries: Shared<Vec<(Instant, ReceivedMessage)>>,
    ids: MessageIds,
    name: String,
}

impl Acker {
    fn lock_redeliveries(&self) -> MutexGuard<'_, Vec<(Instant, ReceivedMessage)>> {
        self.redeliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self, now: Instant, most: usize) -> Vec<ReceivedMessage> {
        let mut redeliveries = self.lock_redeliveries();
        let mut due = Vec::new();
        let mut place = 0;
        while place < redeliveries.len() && due.len() < most {
            match redeliveries[place].0 <= now {
                true => due.push(redeliveries.remove(place).1),
                false => place += 1,
            }
        }
        due
    }

    /// Sends an ack and waits until it is on the wire. Brokers match acks by packet ID, so one that
    /// waits doesn't delay others.
    async fn ack(&self, received: &ReceivedMessage) -> Result<(), SourceError> {
        if received.qos == QoS::AtMostOnce {
            return Ok(());
        }
        let sent = self.acks.wait_for(received.packet)?;
        let queued = match &self.client {
            Client::V4(client) => v4::ack(client, received).await.is_ok(),
            Client::V5(client) => v5::ack(client, received).await.is_ok(),
        };
        if !queued {
            return Err(self.acks.ended());
        }
        match tokio::time::timeout(TIMEOUT, sent).await {
            Ok(Ok(())) => {
                self.ids.forget(&self.name, received.packet);
                Ok(())
            }
            Ok(Err(_)) => Err(self.acks.ended()),
            Err(_) => Err(SourceError::Away("the MQTT broker takes no acknowledgement".to_owned())),
        }
    }
}

struct SessionSource {
    receiver: Mutex<mpsc::Receiver<ReceivedMessage>>,
    acker: Arc<Acker>,
}

impl SessionSource {
    fn delivery(&self, received: ReceivedMessage) -> Delivery {
        let message = received.message.clone();
        let acker = self.acker.clone();
        Delivery::new(message, MqttAck { received, acker, is_answered: AtomicBool::new(false) })
    }
}

#[async_trait]
impl Source for SessionSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut receiver = self.receiver.lock().await;
        let mut messages = self.acker.due(Instant::now(), most);
        if messages.is_empty() {
            match tokio::time::timeout(wait, receiver.recv()).await {
                // The broker redelivers unacked messages of an ended connection on the next one.
                Ok(None) => return Err(self.acker.acks.ended()),
                Ok(Some(received)) => messages.push(received),
                Err(_) => {}
            }
        }
        if self.acker.acks.lock().ended.is_some() {
            return Err(self.acker.acks.ended());
        }
        while messages.len() < most {
            let Ok(received) = receiver.try_recv() else { break };
            messages.push(received);
        }
        Ok(messages.into_iter().map(|received| self.delivery(received)).collect())
    }

    fn ack_wait(&self) -> Duration {
        ACK_WAIT
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        Ok(None)
    }

    async fn close(&self) {
        let ended = async {
            let is_asked = match &self.acker.client {
                Client::V4(client) => client.disconnect().await.is_ok(),
                Client::V5(client) => client.disconnect().await.is_ok(),
            };
            if !is_asked {
                return;
            }
            // The channel closes when the connection has ended.
            let mut receiver = self.receiver.lock().await;
            while receiver.recv().await.is_some() {}
        };
        let _ = tokio::time::timeout(TIMEOUT, ended).await;
    }
}

struct MqttAck {
    received: ReceivedMessage,
    acker: Arc<Acker>,
    is_answered: AtomicBool,
}

impl MqttAck {
    fn come_again(&self, after: Duration) {
        if !self.is_answered.swap(true, Ordering::AcqRel) {
            self.acker.lock_redeliveries().push((Instant::now() + after, self.received.clone()));
        }
    }
}

#[async_trait]
impl DeliveryAck for MqttAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.acker.ack(&self.received).await?;
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

/// Redelivers a message that was neither acked nor nacked, because the broker would not on this
/// connection.
impl Drop for MqttAck {
    fn drop(&mut self) {
        self.come_again(Duration::ZERO);
    }
}
