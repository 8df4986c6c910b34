//! Sources of MQTT, on a real Mosquitto broker.

use std::time::Duration;

use noetl_sources::SourceError;
use noetl_test_services::service::TestService;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::PublishProperties;
use rumqttc::v5::{AsyncClient, Event, Incoming, MqttOptions};

use crate::suite::{SourceServer, fetched, open, suite};

const WAIT: Duration = Duration::from_millis(200);

struct Broker(TestService);

impl Broker {
    fn port(&self) -> u16 {
        self.0.url().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Publishes messages and waits until the broker has all of them.
    async fn publish(&self, messages: Vec<(&str, Vec<u8>, bool, PublishProperties)>) {
        let mut options = MqttOptions::new("sender", "127.0.0.1", self.port());
        options.set_max_packet_size(Some(64 << 20));
        let (client, mut events) = AsyncClient::new(options, 100);
        let count = messages.len();
        for (topic, body, retain, properties) in messages {
            let sent =
                client.publish_with_properties(topic, QoS::AtLeastOnce, retain, body, properties);
            sent.await.unwrap();
        }
        let mut published = 0;
        while published < count {
            if let Event::Incoming(Incoming::PubAck(_)) = events.poll().await.unwrap() {
                published += 1;
            }
        }
    }

    fn keys_of(&self, version: u64) -> String {
        format!(
            "  url: {}\n  topic: orders/#\n  client_id: c\n  version: {version}\n",
            self.0.url()
        )
    }

    async fn send_plain(&self, bodies: &[&[u8]]) {
        let plain = bodies.iter();
        let plain =
            plain.map(|body| ("orders/new", body.to_vec(), false, PublishProperties::default()));
        self.publish(plain.collect()).await;
    }
}

/// A broker for one version of the protocol.
macro_rules! source_server {
    ($name:ident, $version:literal) => {
        struct $name(Broker);

        impl SourceServer for $name {
            const SOURCE: &'static str = "mqtt";

            async fn new(_alone: bool) -> Option<Self> {
                Some(Self(Broker(TestService::mosquitto()?)))
            }

            fn keys(&self) -> String {
                self.0.keys_of($version)
            }

            async fn send(&self, bodies: &[&[u8]]) {
                self.0.send_plain(bodies).await;
            }

            fn stop(&mut self) {
                self.0.0.stop();
            }

            fn start(&mut self) {
                self.0.0.restart();
            }
        }
    };
}

source_server!(Four, 4);
source_server!(Five, 5);

suite!(version_4, Four);
suite!(version_5, Five);

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_an_absent_session_are_retained_and_delivered_once() {
    for version in [4, 5] {
        let Some(service) = TestService::mosquitto() else { return };
        let broker = Broker(service);
        let retained = ("orders/state", b"on".to_vec(), true, PublishProperties::default());
        broker.publish(vec![retained]).await;
        let source = open("mqtt", &broker.keys_of(version)).await.unwrap();
        let deliveries = fetched(&source, 1).await;
        assert_eq!(
            (&deliveries[0].message.body[..], &deliveries[0].message.metadata["retain"]),
            (&b"on"[..], &true.into())
        );
        deliveries[0].handle.ack().await.unwrap();
        source.close().await;
        broker.send_plain(&[b"1", b"1", b"2"]).await;
        let source = open("mqtt", &broker.keys_of(version)).await.unwrap();
        let deliveries = fetched(&source, 3).await;
        assert_ne!(
            deliveries[0].message.id, deliveries[1].message.id,
            "two that say the same are two"
        );
        for delivery in &deliveries {
            delivery.handle.ack().await.unwrap();
        }
        assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0, "version {version}");
        source.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_become_headers_and_one_is_the_message_id() {
    let Some(service) = TestService::mosquitto() else { return };
    let broker = Broker(service);
    let source = open("mqtt", &broker.keys_of(5)).await.unwrap();
    let properties = PublishProperties {
        user_properties: vec![
            ("x-a".to_owned(), "1".to_owned()),
            ("Message-Id".to_owned(), "m7".to_owned()),
        ],
        content_type: Some("text/plain".to_owned()),
        response_topic: Some("answers".to_owned()),
        ..PublishProperties::default()
    };
    broker.publish(vec![("orders/new", b"hello".to_vec(), false, properties)]).await;
    let deliveries = fetched(&source, 1).await;
    let message = &deliveries[0].message;
    assert_eq!((message.id.as_str(), &message.metadata["topic"]), ("m7", &"orders/new".into()));
    assert!(message.headers.contains(&("content-type".to_owned(), "text/plain".to_owned())));
    assert_eq!(message.attributes["response_topic"], "answers");
    source.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_opening_mqtt_name_the_cause() {
    let Some(service) = TestService::mosquitto() else { return };
    let url = service.url();
    for (keys, part, is_final) in [
        (format!("  url: {url}\n  topic: a#\n"), "no filter", true),
        ("  url: http://x\n  topic: a\n".to_owned(), "mqtts://", true),
        ("  url: mqtt://127.0.0.1:1\n  topic: a\n".to_owned(), "not reached", false),
        ("  url: mqtt://127.0.0.1:1\n  topic: a\n  version: 4\n".to_owned(), "not reached", false),
    ] {
        let error = open("mqtt", &keys).await.err().unwrap();
        assert_eq!(matches!(error, SourceError::Settings(_)), is_final, "{keys}: {error}");
        assert!(error.to_string().contains(part), "{keys}: {error}");
    }
}
