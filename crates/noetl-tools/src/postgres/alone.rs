//! Connections to Postgres outside of any pool, for whoever stays connected.

use std::future::poll_fn;
use std::sync::Arc;

use noetl_model::{Failure, Map};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client, Notification};

use super::failure::failed;
use super::settings::Settings;
use super::tls::Tls;

/// What becomes of notifications that come over a connection.
#[derive(Debug, Clone)]
pub enum Notices {
    Ignored,
    /// Somebody is woken by each.
    Wake(Arc<Notify>),
    /// Each is handed on. While there is no room, nothing is read from the connection: the server
    /// keeps them.
    All(mpsc::Sender<Notification>),
}

/// A connection that lasts as long as its client, with the settings of a `postgres` step.
///
/// # Errors
///
/// A `config` failure when the settings cannot be used, otherwise what the server or the network
/// said.
pub async fn connect_postgres(settings: &Map, notices: Notices) -> Result<Client, Failure> {
    let settings = Settings::read(settings)?;
    let tls = Tls::new(settings.verify, settings.root_cert.as_deref())?;
    let connecting = settings.config.connect(tls);
    let (client, mut connection) =
        connecting.await.map_err(|error| failed(&error, &settings.address(), None))?;
    tokio::spawn(async move {
        // Ends when the client is dropped. An error is also the error of what the client asked.
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notification) = message else { continue };
            match &notices {
                Notices::Ignored => {}
                Notices::Wake(waiting) => waiting.notify_one(),
                Notices::All(sender) => {
                    if sender.send(notification).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    Ok(client)
}
