//! Connection to one broker, with requests and responses in order.
//!
//! A background task reads and writes, so that a cancelled caller leaves the connection consistent.
//! When the connection is lost, every waiting caller gets an error. This module doesn't retry.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{
    ApiVersionsRequest, RequestHeader, ResponseHeader, SaslAuthenticateRequest,
    SaslHandshakeRequest,
};
use kafka_protocol::protocol::{
    Decodable as _, HeaderVersion as _, Request, StrBytes, VersionRange,
    encode_request_header_into_buffer,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::sasl::SaslAuth;
use super::scram::Scram;
use super::settings::{Address, KafkaSettings};
use super::{refused, wrong};
use crate::source::{SourceError, chain};

/// Time a broker has to respond, in addition to the requested wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a response in bytes. Requests ask for far less, but a broker always returns at
/// least one complete batch, however large.
const FRAME_MAX: usize = 256 << 20;

/// Capacity of the request queue.
const QUEUE: usize = 64;

/// Fraction of the authenticated session's lifetime that is used, so that a request at its end
/// still gets a response.
const SESSION_USED: f64 = 0.8;

/// Client ID sent with every request.
const CLIENT: &str = "noetl";

/// A handle to a connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct BrokerConnection {
    address: Address,
    calls: mpsc::Sender<BrokerCall>,
    versions: Arc<HashMap<i16, VersionRange>>,
    /// Time until which the session is authenticated; `None` if it doesn't expire.
    until: Option<Instant>,
}

struct BrokerCall {
    key: i16,
    version: i16,
    body: Bytes,
    wait: Duration,
    answer: oneshot::Sender<Result<Bytes, String>>,
}

impl BrokerConnection {
    /// Connects, negotiates API versions, and authenticates.
    pub(super) async fn open(
        address: &Address,
        settings: &KafkaSettings,
    ) -> Result<Self, SourceError> {
        let opened = tokio::time::timeout(TIMEOUT, Self::connect(address, settings)).await;
        opened.unwrap_or_else(|_| {
            Err(SourceError::Away(format!("the broker {address} does not answer")))
        })
    }

    async fn connect(address: &Address, settings: &KafkaSettings) -> Result<Self, SourceError> {
        let failed = |error: std::io::Error| {
            SourceError::Away(chain(&format!("the broker {address} is not reached"), &error))
        };
        let stream =
            TcpStream::connect((address.host.as_str(), address.port)).await.map_err(failed)?;
        // Requests are small, and a caller waits for each.
        stream.set_nodelay(true).map_err(failed)?;
        let (calls, queue) = mpsc::channel(QUEUE);
        match &settings.tls {
            None => drop(tokio::spawn(serve(stream, queue))),
            Some(config) => {
                let name = ServerName::try_from(address.host.clone());
                let name = name.map_err(|_| wrong(format!("{address} has no name to verify")))?;
                let connected = TlsConnector::from(config.clone()).connect(name, stream).await;
                drop(tokio::spawn(serve(connected.map_err(failed)?, queue)));
            }
        }
        let mut connection =
            Self { address: address.clone(), calls, versions: Arc::default(), until: None };
        // Every broker supports the oldest version.
        let known = connection.ask_at(&ApiVersionsRequest::default(), 0, Duration::ZERO).await?;
        check("API versions", known.error_code)?;
        let of = |known: &kafka_protocol::messages::api_versions_response::ApiVersion| {
            (known.api_key, VersionRange { min: known.min_version, max: known.max_version })
        };
        connection.versions = Arc::new(known.api_keys.iter().map(of).collect());
        if let Some(login) = &settings.login {
            let lasts = connection.log_in(login).await?;
            connection.until = lasts.map(|lasts| Instant::now() + lasts.mul_f64(SESSION_USED));
        }
        Ok(connection)
    }

    /// Returns `true` if the connection is closed or its authenticated session is about to expire.
    /// A broker closes connections that continue beyond that.
    pub(super) fn is_over(&self) -> bool {
        self.calls.is_closed() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Sends a request in the newest version that both sides support, up to `newest`.
    pub(super) async fn ask<R: Request>(
        &self,
        request: &R,
        newest: i16,
        wait: Duration,
    ) -> Result<R::Response, SourceError> {
        self.ask_at(request, self.version::<R>(newest)?, wait).await
    }

    /// Returns the newest version of a request that both sides support, up to `newest`.
    pub(super) fn version<R: Request>(&self, newest: i16) -> Result<i16, SourceError> {
        let ours = VersionRange { min: R::VERSIONS.min, max: R::VERSIONS.max.min(newest) };
        let theirs = self.versions.get(&R::KEY).copied();
        let both = theirs.map(|theirs| ours.intersect(&theirs)).filter(|both| !both.is_empty());
        let Some(both) = both else {
            return Err(wrong(format!(
                "the broker {} speaks no version of request {} that this program does ({ours})",
                self.address,
                R::KEY
            )));
        };
        Ok(both.max)
    }

    async fn ask_at<R: Request>(
        &self,
        request: &R,
        version: i16,
        wait: Duration,
    ) -> Result<R::Response, SourceError> {
        let lost = |reason: String| {
            SourceError::Away(format!("the broker {} is lost: {reason}", self.address))
        };
        let mut body = BytesMut::new();
        let encoded = request.encode(&mut body, version);
        encoded.map_err(|error| wrong(format!("a request cannot be written: {error}")))?;
        let (answer, answered) = oneshot::channel();
        let call = BrokerCall { key: R::KEY, version, body: body.freeze(), wait, answer };
        let gone = || lost("the connection is closed".to_owned());
        self.calls.send(call).await.map_err(|_| gone())?;
        let mut bytes = answered.await.map_err(|_| gone())?.map_err(lost)?;
        let unread = |error: &dyn std::fmt::Display| lost(format!("invalid response: {error}"));
        let header = R::Response::header_version(version);
        ResponseHeader::decode(&mut bytes, header).map_err(|error| unread(&error))?;
        R::Response::decode(&mut bytes, version).map_err(|error| unread(&error))
    }

    /// Authenticates with SASL. Returns the session's lifetime if the broker limits it.
    async fn log_in(&self, login: &SaslAuth) -> Result<Option<Duration>, SourceError> {
        let mechanism = login.mechanism();
        let request =
            SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str(mechanism));
        let handshake = self.ask(&request, 1, Duration::ZERO).await?;
        if handshake.error_code != 0 {
            let theirs: Vec<&str> = handshake.mechanisms.iter().map(StrBytes::as_str).collect();
            let theirs = theirs.join(", ");
            let message = format!("the broker does not support {mechanism}, only: {theirs}");
            return Err(wrong(message));
        }
        let strange = |what| SourceError::Away(format!("invalid response of the broker: {what}"));
        let reply = match login {
            SaslAuth::Plain(user) => {
                self.send_auth(format!("\0{}\0{}", user.name, user.password)).await?
            }
            SaslAuth::Scram(hash, user) => {
                let mut random = [0; 18];
                let filled = SystemRandom::new().fill(&mut random);
                filled.map_err(|_| wrong("failed to generate a nonce"))?;
                let nonce = STANDARD_NO_PAD.encode(random);
                let scram = Scram::new(*hash, &user.name, &user.password, nonce);
                let first = self.send_auth(scram.first()).await?;
                let (last, verifier) = scram.last(&first.text).map_err(strange)?;
                let reply = self.send_auth(last).await?;
                // A broker that doesn't know the password cannot compute this, so it is an
                // impostor.
                if reply.text.split(',').next() != Some(verifier.as_str()) {
                    return Err(wrong("the broker failed to prove that it knows the password"));
                }
                reply
            }
            SaslAuth::Bearer(bearer) => {
                let shown = format!("n,,\u{1}auth=Bearer {}\u{1}\u{1}", bearer.get().await?);
                let refused = match self.send_auth(shown).await {
                    Ok(reply) if reply.text.is_empty() => return Ok(reply.lasts),
                    // The broker sent its reason and fails the exchange after this confirmation.
                    Ok(_) => self.send_auth("\u{1}".to_owned()).await.err(),
                    Err(error) => Some(error),
                };
                // The token may have been revoked, and a new one may be accepted.
                bearer.forget().await;
                return Err(refused.unwrap_or_else(|| wrong("the broker rejected the login")));
            }
        };
        Ok(reply.lasts)
    }

    /// Sends one SASL message and returns the broker's reply.
    async fn send_auth(&self, part: String) -> Result<BrokerError, SourceError> {
        let request = SaslAuthenticateRequest::default().with_auth_bytes(part.into());
        let reply = self.ask(&request, 1, Duration::ZERO).await?;
        if reply.error_code != 0 {
            let reason = reply.error_message.as_ref().map_or("", StrBytes::as_str);
            return Err(wrong(format!("the broker rejected the login: {reason}")));
        }
        let text = String::from_utf8(reply.auth_bytes.to_vec()).map_err(|_| {
            SourceError::Away("invalid response of the broker: not UTF-8".to_owned())
        })?;
        let lasts = u64::try_from(reply.session_lifetime_ms).ok().filter(|ms| *ms > 0);
        Ok(BrokerError { text, lasts: lasts.map(Duration::from_millis) })
    }
}

/// Reply to a SASL message.
struct BrokerError {
    text: String,
    lasts: Option<Duration>,
}

/// Converts an error code of a response to an error.
pub(super) fn check(what: &str, code: i16) -> Result<(), SourceError> {
    ResponseError::try_from_code(code).map_or(Ok(()), |error| Err(refused(what, error)))
}

/// Sends requests and reads responses until all handles are dropped or the connection is lost.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<BrokerCall>,
) {
    let mut number = 0;
    loop {
        let call = tokio::select! {
            call = queue.recv() => call,
            // Brokers close idle connections. Reading detects that before the next request.
            _ = stream.read_u8() => return,
        };
        let Some(call) = call else { return };
        number = (number + 1) % i32::MAX;
        let limit = TIMEOUT + call.wait;
        let exchanged = tokio::time::timeout(limit, exchange(&mut stream, number, &call)).await;
        let answer = match exchanged {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it does not answer in time".to_owned()),
        };
        let is_over = answer.is_err();
        // The caller may have been cancelled; the response is read anyway.
        let _ = call.answer.send(answer);
        if is_over {
            return;
        }
    }
}

async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    number: i32,
    call: &BrokerCall,
) -> std::io::Result<Bytes> {
    let header = RequestHeader::default()
        .with_request_api_key(call.key)
        .with_request_api_version(call.version)
        .with_correlation_id(number)
        .with_client_id(Some(StrBytes::from_static_str(CLIENT)));
    let mut frame = BytesMut::from(&[0; 4][..]);
    encode_request_header_into_buffer(&mut frame, &header).map_err(std::io::Error::other)?;
    frame.put_slice(&call.body);
    let length = u32::try_from(frame.len() - 4).map_err(std::io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    stream.write_all(&frame).await?;
    stream.flush().await?;

    let length = stream.read_u32().await?;
    let length = usize::try_from(length).ok().filter(|length| (4..=FRAME_MAX).contains(length));
    let length = length.ok_or_else(|| std::io::Error::other("its answer has no length"))?;
    let mut answer = BytesMut::zeroed(length);
    stream.read_exact(&mut answer).await?;
    let answer = answer.freeze();
    if answer.slice(..4).get_i32() != number {
        return Err(std::io::Error::other("its answer is for another request"));
    }
    Ok(answer)
}
