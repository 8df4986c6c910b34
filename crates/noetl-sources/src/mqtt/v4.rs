//! MQTT 3.1.1 (protocol level 4).

use noetl_model::Map;
use rumqttc::{
    AsyncClient, ClientError, ConnectReturnCode, ConnectionError, Event, EventLoop, Incoming,
    MqttOptions, Outgoing, Publish, SubscribeFilter, SubscribeReasonCode,
};

use super::settings::MqttSettings;
use super::{MessageQueue, Published, ReceivedMessage};
use crate::source::{SourceError, chain};

/// Maximum packet size of the protocol in bytes. The broker would redeliver a rejected packet
/// forever.
const PACKET_MAX: usize = 268_435_460;

/// Capacity of the client's request queue.
const REQUESTS: usize = 1024;

/// Connects with a persistent session and subscribes to the topics.
pub(super) async fn open(
    settings: &MqttSettings,
    queue: MessageQueue,
) -> Result<AsyncClient, SourceError> {
    let (address, transport) = settings.way().await?;
    let mut options = MqttOptions::new(&settings.client_id, address, settings.port);
    options
        .set_transport(transport)
        .set_clean_session(false)
        .set_manual_acks(true)
        .set_keep_alive(std::time::Duration::from_secs(15))
        .set_max_packet_size(PACKET_MAX, PACKET_MAX);
    if let Some((user, password)) = &settings.login {
        options.set_credentials(user, password);
    }
    let (client, mut events) = AsyncClient::new(options, REQUESTS);
    let mut was_there = false;
    loop {
        match events.poll().await.map_err(|error| failed(&error))? {
            Event::Incoming(Incoming::ConnAck(ack)) => {
                was_there = ack.session_present;
                let filters = settings.topics.iter();
                let filters =
                    filters.map(|topic| SubscribeFilter::new(topic.clone(), settings.qos));
                let asked = client.subscribe_many(filters).await;
                asked.map_err(|error| SourceError::Away(chain("not subscribed", &error)))?;
            }
            Event::Incoming(Incoming::SubAck(ack)) => {
                if ack.return_codes.contains(&SubscribeReasonCode::Failure) {
                    let message = "the broker refuses a topic: this user may not read it";
                    return Err(SourceError::Settings(message.to_owned()));
                }
                break;
            }
            // Stored messages of the session may arrive before the SUBACK.
            event => handle_event(&queue, event, &client, was_there).await,
        }
    }
    tokio::spawn(run(events, queue, client.clone(), was_there));
    Ok(client)
}

async fn run(mut events: EventLoop, queue: MessageQueue, client: AsyncClient, was_there: bool) {
    loop {
        match events.poll().await {
            Ok(event) => handle_event(&queue, event, &client, was_there).await,
            Err(error) => return queue.acks.end(failed(&error).to_string()),
        }
    }
}

async fn handle_event(queue: &MessageQueue, event: Event, client: &AsyncClient, was_there: bool) {
    match event {
        // A broker sends retained messages on every subscription; a resumed session has received
        // them.
        Event::Incoming(Incoming::Publish(publish)) if publish.retain && was_there => {
            let _ = client.try_ack(&publish);
        }
        Event::Incoming(Incoming::Publish(publish)) => queue.enqueue(published(publish)),
        Event::Outgoing(Outgoing::PubAck(packet) | Outgoing::PubRec(packet)) => {
            queue.acks.sent(packet);
        }
        _ => {}
    }
}

fn published(publish: Publish) -> Published {
    Published {
        is_repeated: publish.dup,
        is_retained: publish.retain,
        packet: publish.pkid,
        qos: publish.qos,
        topic: publish.topic,
        payload: publish.payload,
        headers: Vec::new(),
        attributes: Map::new(),
    }
}

pub(super) async fn ack(
    client: &AsyncClient,
    received: &ReceivedMessage,
) -> Result<(), ClientError> {
    let mut publish = Publish::new("", received.qos, Vec::new());
    publish.pkid = received.packet;
    client.ack(&publish).await
}

fn failed(error: &ConnectionError) -> SourceError {
    let message = chain("the MQTT broker is not reached", error);
    match error {
        ConnectionError::ConnectionRefused(
            ConnectReturnCode::BadUserNamePassword
            | ConnectReturnCode::NotAuthorized
            | ConnectReturnCode::BadClientId
            | ConnectReturnCode::RefusedProtocolVersion,
        ) => SourceError::Settings(message),
        _ => SourceError::Away(message),
    }
}
