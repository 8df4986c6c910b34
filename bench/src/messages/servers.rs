//! Servers that messages come from, each private to one measurement.

use std::path::PathBuf;
use std::process::Command;

use async_nats::jetstream;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, Event, Incoming, MqttOptions};

use super::{Outcome, body};

/// Messages that are under way to a server at a time.
const BATCH: usize = 500;

/// Where messages may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Venue {
    Nats,
    Postgres,
    Redis,
    Mqtt,
}

impl Venue {
    pub(super) const ALL: [Self; 4] = [Self::Nats, Self::Postgres, Self::Redis, Self::Mqtt];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nats => "messages_nats",
            Self::Postgres => "messages_postgres",
            Self::Redis => "messages_redis",
            Self::Mqtt => "messages_mqtt",
        }
    }

    const fn script(self) -> &'static str {
        match self {
            Self::Nats => "nats.sh",
            Self::Postgres => "postgres.sh",
            Self::Redis => "redis.sh",
            Self::Mqtt => "mosquitto.sh",
        }
    }

    /// A server; none, with a word on stderr, when there is none to be had here.
    #[expect(clippy::print_stderr, reason = "stdout is for measurements")]
    pub(super) fn start(self) -> Outcome<Option<Server>> {
        if let Err(error) = script(self.script(), &["install"]) {
            eprintln!("{} is left out: {error}", self.name());
            return Ok(None);
        }
        let name = format!("noetl-{}-bench-{}", self.script(), std::process::id());
        let directory = std::env::temp_dir().join(name);
        let url = script(self.script(), &["start", &directory.display().to_string()])?;
        Ok(Some(Server { venue: self, directory, url }))
    }
}

/// A server, removed with this.
pub(super) struct Server {
    venue: Venue,
    directory: PathBuf,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is left of it is in a temporary directory.
        let _ = script(self.venue.script(), &["remove", &self.directory.display().to_string()]);
    }
}

impl Server {
    /// Whether it keeps messages only for who was there before.
    pub(super) fn is_live(&self) -> bool {
        self.venue == Venue::Mqtt
    }

    /// The keys of `spec` that reach it.
    pub(super) fn keys(&self) -> String {
        let (source, more) = match self.venue {
            Venue::Nats => ("nats", "stream: ORDERS"),
            Venue::Postgres => ("postgres", "table: outbox\n  body: body\n  ack: delete"),
            Venue::Redis => ("redis", "stream: orders\n  body: body"),
            Venue::Mqtt => ("mqtt", "topic: orders\n  client_id: reader"),
        };
        format!("  source: {source}\n  mode: pull\n  url: {}\n  {more}\n", self.url)
    }

    fn options(&self, name: &str) -> Outcome<MqttOptions> {
        let port = self.url.rsplit_once(':').ok_or("a port")?.1.parse()?;
        Ok(MqttOptions::new(name, "127.0.0.1", port))
    }

    /// Sends so many messages; when this returns, the server has them.
    pub(super) async fn send(&self, count: usize) -> Outcome<()> {
        match self.venue {
            Venue::Nats => self.to_nats(count).await,
            Venue::Postgres => self.to_postgres(count),
            Venue::Redis => self.to_redis(count).await,
            Venue::Mqtt => self.to_mqtt(count).await,
        }
    }

    async fn to_nats(&self, count: usize) -> Outcome<()> {
        let context = jetstream::new(async_nats::connect(&self.url).await?);
        let config = jetstream::stream::Config {
            name: "ORDERS".to_owned(),
            subjects: vec!["orders".to_owned()],
            ..Default::default()
        };
        context.create_stream(config).await?;
        let mut in_flight = Vec::with_capacity(BATCH);
        for number in 0..count {
            in_flight.push(context.publish("orders", body(number).into()).await?);
            if in_flight.len() == BATCH || number + 1 == count {
                for one in in_flight.drain(..) {
                    one.await?;
                }
            }
        }
        Ok(())
    }

    fn to_postgres(&self, count: usize) -> Outcome<()> {
        let sql = format!(
            "create table outbox (id bigint generated always as identity primary key, body text); \
             insert into outbox (body) select replace('{}', '4711', n::text) \
             from generate_series(1, {count}) n",
            body(4711)
        );
        let made = Command::new("psql").args(["-X", "-q", "-c", &sql, &self.url]).status()?;
        if made.success() { Ok(()) } else { Err("psql could not make messages".into()) }
    }

    async fn to_redis(&self, count: usize) -> Outcome<()> {
        let client = redis::Client::open(self.url.as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        for first in (0..count).step_by(BATCH) {
            let mut pipe = redis::pipe();
            for number in first..count.min(first + BATCH) {
                pipe.cmd("XADD").arg("orders").arg("*").arg("body").arg(body(number)).ignore();
            }
            pipe.query_async::<()>(&mut connection).await?;
        }
        Ok(())
    }

    async fn to_mqtt(&self, count: usize) -> Outcome<()> {
        let (client, mut events) = AsyncClient::new(self.options("sender")?, BATCH);
        let sender = tokio::spawn(async move {
            for number in 0..count {
                let sent = client.publish("orders", QoS::AtLeastOnce, false, body(number));
                sent.await.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(client)
        });
        let mut taken = 0;
        while taken < count {
            if let Event::Incoming(Incoming::PubAck(_)) = events.poll().await? {
                taken += 1;
            }
        }
        drop(sender.await??);
        Ok(())
    }
}

fn script(name: &str, arguments: &[&str]) -> Outcome<String> {
    let path = format!("{}/../scripts/services/{name}", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(path).args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
