//! Connections to Postgres outside of the pool, for long-lived clients.

use std::future::poll_fn;
use std::sync::Arc;

use noetl_model::{Failure, Map};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client, Notification};

use super::failure::failed;
use super::settings::PostgresSettings;
use super::tls::Tls;

/// Handling of notifications (`NOTIFY`) that a connection receives.
#[derive(Debug, Clone)]
pub enum NotifyHandling {
    Ignored,
    /// Each notification wakes one waiting task.
    Wake(Arc<Notify>),
    /// Each notification is sent to a channel. While the channel is full, nothing is read from the
    /// connection, and the server queues notifications.
    All(mpsc::Sender<Notification>),
}

/// Connects with the settings of a `postgres` step. The connection lasts as long as its client.
///
/// # Errors
///
/// Returns a `config` failure if the settings are invalid, and otherwise the failure of the server
/// or the network.
pub async fn connect_postgres(settings: &Map, notices: NotifyHandling) -> Result<Client, Failure> {
    let settings = PostgresSettings::read(settings)?;
    let tls = Tls::new(settings.verify, settings.root_cert.as_deref())?;
    let connecting = settings.config.connect(tls);
    let (client, mut connection) =
        connecting.await.map_err(|error| failed(&error, &settings.address(), None))?;
    tokio::spawn(async move {
        // Ends when the client is dropped. The client's pending requests also report the error.
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notification) = message else { continue };
            match &notices {
                NotifyHandling::Ignored => {}
                NotifyHandling::Wake(waiting) => waiting.notify_one(),
                NotifyHandling::All(sender) => {
                    if sender.send(notification).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    Ok(client)
}
