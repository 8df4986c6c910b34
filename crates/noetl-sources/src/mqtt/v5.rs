//! MQTT 5, the default protocol version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::{Map, Value};
use rumqttc::Outgoing;
use rumqttc::v5::mqttbytes::QoS as Wanted;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, Filter, Publish, RetainForwardRule, SubscribeReasonCode,
};
use rumqttc::v5::{
    AsyncClient, ClientError, ConnectionError, Event, EventLoop, Incoming, MqttOptions,
};

use super::settings::MqttSettings;
use super::{MessageQueue, Published, ReceivedMessage};
use crate::source::{SourceError, chain};

/// Maximum packet size of the protocol in bytes. A broker drops messages larger than the client
/// announces.
const PACKET_MAX: u32 = 268_435_455;

/// Receive maximum: messages the broker may have in flight.
const UNDER_WAY_MAX: u16 = 1000;

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
        .set_clean_start(false)
        .set_session_expiry_interval(Some(settings.session_secs))
        .set_receive_maximum(Some(UNDER_WAY_MAX))
        .set_manual_acks(true)
        .set_keep_alive(std::time::Duration::from_secs(15))
        .set_max_packet_size(Some(PACKET_MAX));
    if let Some((user, password)) = &settings.login {
        options.set_credentials(user, password);
    }
    let (client, mut events) = AsyncClient::new(options, REQUESTS);
    loop {
        match events.poll().await.map_err(|error| failed(&error))? {
            Event::Incoming(Incoming::ConnAck(_)) => {
                let filters = settings.topics.iter().map(|topic| {
                    let mut filter = Filter::new(topic.clone(), wanted(settings.qos));
                    // Retained messages arrive once per session, not on every connection.
                    filter.retain_forward_rule = RetainForwardRule::OnNewSubscribe;
                    filter
                });
                let asked = client.subscribe_many(filters).await;
                asked.map_err(|error| SourceError::Away(chain("not subscribed", &error)))?;
            }
            Event::Incoming(Incoming::SubAck(ack)) => {
                let is_taken = |code| matches!(code, &SubscribeReasonCode::Success(_));
                if let Some(code) = ack.return_codes.iter().find(|code| !is_taken(code)) {
                    let message = format!("the broker refuses a topic: {code:?}");
                    return Err(SourceError::Settings(message));
                }
                break;
            }
            // Stored messages of the session may arrive before the SUBACK.
            event => handle_event(&queue, event),
        }
    }
    tokio::spawn(run(events, queue));
    Ok(client)
}

async fn run(mut events: EventLoop, queue: MessageQueue) {
    loop {
        match events.poll().await {
            Ok(event) => handle_event(&queue, event),
            Err(error) => return queue.acks.end(failed(&error).to_string()),
        }
    }
}

fn handle_event(queue: &MessageQueue, event: Event) {
    match event {
        Event::Incoming(Incoming::Publish(publish)) => queue.enqueue(published(publish)),
        Event::Outgoing(Outgoing::PubAck(packet) | Outgoing::PubRec(packet)) => {
            queue.acks.sent(packet);
        }
        _ => {}
    }
}

fn published(publish: Publish) -> Published {
    let properties = publish.properties.unwrap_or_default();
    let mut attributes = Map::new();
    if let Some(topic) = properties.response_topic {
        attributes.insert("response_topic".to_owned(), Value::from(topic));
    }
    if let Some(data) = properties.correlation_data {
        let text = String::from_utf8(data.to_vec());
        let text = text.unwrap_or_else(|error| STANDARD.encode(error.as_bytes()));
        attributes.insert("correlation_data".to_owned(), Value::from(text));
    }
    let mut headers = properties.user_properties;
    if let Some(kind) = properties.content_type {
        headers.push(("content-type".to_owned(), kind));
    }
    Published {
        is_repeated: publish.dup,
        is_retained: publish.retain,
        packet: publish.pkid,
        qos: match publish.qos {
            Wanted::AtMostOnce => rumqttc::QoS::AtMostOnce,
            Wanted::AtLeastOnce => rumqttc::QoS::AtLeastOnce,
            Wanted::ExactlyOnce => rumqttc::QoS::ExactlyOnce,
        },
        topic: String::from_utf8_lossy(&publish.topic).into_owned(),
        payload: publish.payload,
        headers,
        attributes,
    }
}

fn wanted(qos: rumqttc::QoS) -> Wanted {
    match qos {
        rumqttc::QoS::AtMostOnce => Wanted::AtMostOnce,
        rumqttc::QoS::AtLeastOnce => Wanted::AtLeastOnce,
        rumqttc::QoS::ExactlyOnce => Wanted::ExactlyOnce,
    }
}

pub(super) async fn ack(
    client: &AsyncClient,
    received: &ReceivedMessage,
) -> Result<(), ClientError> {
    let mut publish = Publish::new("", wanted(received.qos), Vec::new(), None);
    publish.pkid = received.packet;
    client.ack(&publish).await
}

fn failed(error: &ConnectionError) -> SourceError {
    let message = chain("the MQTT broker is not reached", error);
    match error {
        ConnectionError::ConnectionRefused(
            ConnectReturnCode::BadUserNamePassword
            | ConnectReturnCode::NotAuthorized
            | ConnectReturnCode::Banned
            | ConnectReturnCode::BadAuthenticationMethod
            | ConnectReturnCode::ClientIdentifierNotValid
            | ConnectReturnCode::UnsupportedProtocolVersion
            | ConnectReturnCode::RefusedProtocolVersion,
        ) => SourceError::Settings(message),
        _ => SourceError::Away(message),
    }
}
