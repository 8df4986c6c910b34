//! A broker in this process with one topic: it speaks what a reader needs, from the definitions of Kafka
//! itself, and keeps its messages when it is stopped.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, FetchRequest, FetchResponse, FindCoordinatorResponse,
    ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse,
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
    ResponseHeader, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};
use kafka_protocol::protocol::{
    Decodable, Encodable, HeaderVersion, StrBytes, decode_request_header_from_buffer,
};
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::record::record;

pub(crate) const TOPIC: &str = "orders";

/// Supported versions of each API.
const VERSIONS: &[(ApiKey, i16, i16)] = &[
    (ApiKey::Fetch, 4, 11),
    (ApiKey::ListOffsets, 1, 5),
    (ApiKey::Metadata, 0, 9),
    (ApiKey::OffsetCommit, 2, 8),
    (ApiKey::OffsetFetch, 1, 7),
    (ApiKey::FindCoordinator, 0, 3),
    (ApiKey::ApiVersions, 0, 3),
    (ApiKey::SaslHandshake, 1, 1),
    (ApiKey::SaslAuthenticate, 0, 2),
];

/// State and configured behavior of the broker.
#[derive(Default)]
pub(crate) struct BrokerState {
    /// Messages of each partition, starting at its first offset.
    pub(crate) partitions: Vec<Vec<Bytes>>,
    pub(crate) first: i64,
    pub(crate) committed: HashMap<(String, i32), i64>,
    pub(crate) commits: usize,
    pub(crate) login: Option<(String, String)>,
    /// Valid bearer token, if the broker requires one.
    pub(crate) bearer: Option<String>,
    /// Session lifetime in milliseconds. 0 means no limit.
    pub(crate) session_ms: i64,
    /// Number of successful authentications.
    pub(crate) let_in: usize,
    /// Whether every group has a member.
    pub(crate) has_members: bool,
    /// Number of fetches still to be rejected with `NotLeaderOrFollower`.
    pub(crate) moves: usize,
}

#[derive(Clone, Default)]
struct Shared {
    state: Arc<Mutex<BrokerState>>,
    arrived: Arc<Notify>,
}

pub(crate) struct Broker {
    shared: Shared,
    pub(crate) address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    running: Option<tokio::runtime::Runtime>,
}

impl Broker {
    pub(crate) fn begin(partitions: usize, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut broker = Self { shared: Shared::default(), address, tls, running: None };
        broker.state().partitions = vec![Vec::new(); partitions];
        broker.serve(listener);
        broker
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, BrokerState> {
        self.shared.state.lock().unwrap()
    }

    pub(crate) fn send(&self, partition: usize, bodies: &[&[u8]]) {
        let bodies = bodies.iter().map(|body| Bytes::copy_from_slice(body));
        self.state().partitions[partition].extend(bodies);
        self.shared.arrived.notify_waiters();
    }

    /// Serves on a separate runtime, so that stopping it closes all connections.
    fn serve(&mut self, listener: std::net::TcpListener) {
        listener.set_nonblocking(true).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (shared, address) = (self.shared.clone(), self.address);
        let tls = self.tls.clone().map(TlsAcceptor::from);
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    // A client that is gone is no mistake of the broker.
                    let _ = match tls {
                        None => answer_all(stream, shared, address).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => answer_all(stream, shared, address).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        self.running = Some(runtime);
    }

    #[expect(clippy::disallowed_methods, reason = "the runtime of the broker ends beside this one")]
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
        // What ends in the background lets the port go a moment later.
        while std::net::TcpStream::connect(self.address).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the runtime of the broker ends beside this one")]
    pub(crate) fn start(&mut self) {
        let listener = loop {
            match std::net::TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        self.serve(listener);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
    }
}

async fn answer_all(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    shared: Shared,
    address: SocketAddr,
) -> std::io::Result<()> {
    let mut is_in = {
        let state = shared.state.lock().unwrap();
        state.login.is_none() && state.bearer.is_none()
    };
    loop {
        let length = stream.read_u32().await?;
        let mut frame = BytesMut::zeroed(usize::try_from(length).unwrap());
        stream.read_exact(&mut frame).await?;
        let mut frame = frame.freeze();
        let header = decode_request_header_from_buffer(&mut frame).unwrap();
        let key = ApiKey::try_from(header.request_api_key).unwrap();
        let version = header.request_api_version;
        let number = header.correlation_id;
        let open = [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate];
        if !is_in && !open.contains(&key) {
            // A real one hangs up as well.
            return Ok(());
        }
        let answer = match key {
            ApiKey::ApiVersions => written(number, version, versions()),
            ApiKey::SaslHandshake => {
                written(number, version, handshake(&shared, read(&mut frame, version)))
            }
            ApiKey::SaslAuthenticate => {
                let answer = authenticate(&shared, read(&mut frame, version));
                // What says something may still be about why not.
                is_in = answer.error_code == 0 && answer.auth_bytes.is_empty();
                shared.state.lock().unwrap().let_in += usize::from(is_in);
                written(number, version, answer)
            }
            ApiKey::Metadata => {
                let answer = metadata(&shared, read(&mut frame, version), address);
                written(number, version, answer)
            }
            ApiKey::FindCoordinator => {
                let response = FindCoordinatorResponse::default()
                    .with_host(StrBytes::from_static_str("127.0.0.1"))
                    .with_port(i32::from(address.port()));
                written(number, version, response)
            }
            ApiKey::ListOffsets => {
                written(number, version, ends(&shared, read(&mut frame, version)))
            }
            ApiKey::OffsetFetch => {
                written(number, version, committed(&shared, read(&mut frame, version)))
            }
            ApiKey::OffsetCommit => {
                written(number, version, commit(&shared, read(&mut frame, version)))
            }
            ApiKey::Fetch => {
                let request: FetchRequest = read(&mut frame, version);
                let arrived = shared.arrived.notified();
                let mut answer = fetch(&shared, &request);
                if answer.is_none() {
                    let wait = u64::try_from(request.max_wait_ms).unwrap();
                    let _ = tokio::time::timeout(Duration::from_millis(wait), arrived).await;
                    answer = fetch(&shared, &request);
                }
                written(number, version, answer.unwrap_or_else(|| empty(&shared, &request)))
            }
            other => panic!("nobody asks a reader's broker for {other:?}"),
        };
        stream.write_all(&answer).await?;
        stream.flush().await?;
    }
}

fn read<R: Decodable>(frame: &mut Bytes, version: i16) -> R {
    let read = R::decode(frame, version).unwrap();
    assert!(!frame.has_remaining(), "a request is as long as it says");
    read
}

fn written<R: Encodable + HeaderVersion>(number: i32, version: i16, answer: R) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u32(0);
    let header = ResponseHeader::default().with_correlation_id(number);
    header.encode(&mut frame, R::header_version(version)).unwrap();
    answer.encode(&mut frame, version).unwrap();
    let length = u32::try_from(frame.len() - 4).unwrap();
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

fn name(text: &str) -> kafka_protocol::messages::TopicName {
    kafka_protocol::messages::TopicName(StrBytes::from_string(text.to_owned()))
}

fn versions() -> ApiVersionsResponse {
    let keys = VERSIONS.iter().map(|(key, min, max)| {
        ApiVersion::default()
            .with_api_key(*key as i16)
            .with_min_version(*min)
            .with_max_version(*max)
    });
    ApiVersionsResponse::default().with_api_keys(keys.collect())
}

fn handshake(shared: &Shared, request: SaslHandshakeRequest) -> SaslHandshakeResponse {
    let mechanism = match shared.state.lock().unwrap().bearer {
        Some(_) => "OAUTHBEARER",
        None => "PLAIN",
    };
    let answer = SaslHandshakeResponse::default()
        .with_mechanisms(vec![StrBytes::from_static_str(mechanism)]);
    match request.mechanism.as_str() == mechanism {
        true => answer,
        false => answer.with_error_code(ResponseError::UnsupportedSaslMechanism.code()),
    }
}

fn authenticate(shared: &Shared, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse {
    let state = shared.state.lock().unwrap();
    let shown = String::from_utf8(request.auth_bytes.to_vec()).unwrap();
    let (user, password) = state.login.clone().unwrap_or_default();
    let right = match &state.bearer {
        Some(token) => format!("n,,\u{1}auth=Bearer {token}\u{1}\u{1}"),
        None => format!("\0{user}\0{password}"),
    };
    let answer = SaslAuthenticateResponse::default();
    if shown == right {
        answer.with_session_lifetime_ms(state.session_ms)
    } else if shown.starts_with("n,,") {
        // It refuses once this was heard.
        answer.with_auth_bytes(Bytes::from_static(b"{\"status\":\"invalid_token\"}"))
    } else {
        answer
            .with_error_code(ResponseError::SaslAuthenticationFailed.code())
            .with_error_message(Some(StrBytes::from_static_str("Authentication failed")))
    }
}

fn metadata(shared: &Shared, request: MetadataRequest, address: SocketAddr) -> MetadataResponse {
    let count = shared.state.lock().unwrap().partitions.len();
    let broker = MetadataResponseBroker::default()
        .with_node_id(BrokerId(1))
        .with_host(StrBytes::from_static_str("127.0.0.1"))
        .with_port(i32::from(address.port()));
    let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
        let topic = topic.name.unwrap();
        let answer = MetadataResponseTopic::default().with_name(Some(topic.clone()));
        if topic.as_str() != TOPIC {
            return answer.with_error_code(ResponseError::UnknownTopicOrPartition.code());
        }
        let partitions = (0..count).map(|index| {
            MetadataResponsePartition::default()
                .with_partition_index(i32::try_from(index).unwrap())
                .with_leader_id(BrokerId(1))
        });
        answer.with_partitions(partitions.collect())
    });
    MetadataResponse::default().with_brokers(vec![broker]).with_topics(topics.collect())
}

fn end(state: &BrokerState, partition: i32) -> i64 {
    let messages = &state.partitions[usize::try_from(partition).unwrap()];
    state.first + i64::try_from(messages.len()).unwrap()
}

fn ends(shared: &Shared, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let state = shared.state.lock().unwrap();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|partition| {
            let offset = match partition.timestamp {
                -2 => state.first,
                -1 => end(&state, partition.partition_index),
                other => panic!("{other}"),
            };
            ListOffsetsPartitionResponse::default()
                .with_partition_index(partition.partition_index)
                .with_offset(offset)
        });
        ListOffsetsTopicResponse::default()
            .with_name(topic.name)
            .with_partitions(partitions.collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

fn committed(shared: &Shared, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let state = shared.state.lock().unwrap();
    let topics = request.topics.unwrap().into_iter().map(|topic| {
        let partitions = topic.partition_indexes.into_iter().map(|index| {
            let offset = state.committed.get(&(request.group_id.to_string(), index));
            OffsetFetchResponsePartition::default()
                .with_partition_index(index)
                .with_committed_offset(offset.copied().unwrap_or(-1))
        });
        OffsetFetchResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions.collect())
    });
    OffsetFetchResponse::default().with_topics(topics.collect())
}

fn commit(shared: &Shared, request: OffsetCommitRequest) -> OffsetCommitResponse {
    let mut state = shared.state.lock().unwrap();
    let is_member = request.generation_id_or_member_epoch >= 0;
    let error = match state.has_members && !is_member {
        true => ResponseError::UnknownMemberId.code(),
        false => 0,
    };
    state.commits += 1;
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|partition| {
            let place = (request.group_id.to_string(), partition.partition_index);
            if error == 0 {
                state.committed.insert(place, partition.committed_offset);
            }
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(error)
        });
        OffsetCommitResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions.collect())
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}

/// Returns the available records, or `None` if there are none.
fn fetch(shared: &Shared, request: &FetchRequest) -> Option<FetchResponse> {
    let mut state = shared.state.lock().unwrap();
    let mut partitions = Vec::new();
    let is_elsewhere = state.moves > 0;
    state.moves = state.moves.saturating_sub(1);
    for partition in request.topics.iter().flat_map(|topic| &topic.partitions) {
        let (index, at) = (partition.partition, partition.fetch_offset);
        let end = end(&state, index);
        let answer = PartitionData::default()
            .with_partition_index(index)
            .with_high_watermark(end)
            .with_last_stable_offset(end);
        if is_elsewhere {
            partitions.push(answer.with_error_code(ResponseError::NotLeaderOrFollower.code()));
        } else if at < state.first || at > end {
            partitions.push(answer.with_error_code(ResponseError::OffsetOutOfRange.code()));
        } else if at < end {
            let from = usize::try_from(at - state.first).unwrap();
            let messages = &state.partitions[usize::try_from(index).unwrap()][from..];
            partitions.push(answer.with_records(Some(batches(
                at,
                messages,
                partition.partition_max_bytes,
            ))));
        }
    }
    (!partitions.is_empty()).then(|| {
        let topic =
            FetchableTopicResponse::default().with_topic(name(TOPIC)).with_partitions(partitions);
        FetchResponse::default().with_responses(vec![topic])
    })
}

fn empty(shared: &Shared, request: &FetchRequest) -> FetchResponse {
    let state = shared.state.lock().unwrap();
    let asked = request.topics.iter().flat_map(|topic| &topic.partitions);
    let partitions = asked.map(|partition| {
        PartitionData::default()
            .with_partition_index(partition.partition)
            .with_high_watermark(end(&state, partition.partition))
            .with_records(Some(Bytes::new()))
    });
    let topic = FetchableTopicResponse::default()
        .with_topic(name(TOPIC))
        .with_partitions(partitions.collect());
    FetchResponse::default().with_responses(vec![topic])
}

/// Messages in batches of two, up to so many bytes; the first batch whole, and the last one cut off.
fn batches(at: i64, messages: &[Bytes], most: i32) -> Bytes {
    let most = usize::try_from(most).unwrap();
    let mut bytes = BytesMut::new();
    for (number, pair) in messages.chunks(2).enumerate() {
        let records: Vec<Record> = pair
            .iter()
            .enumerate()
            .map(|(index, body)| record(at + i64::try_from(number * 2 + index).unwrap(), body))
            .collect();
        let before = bytes.len();
        let options = RecordEncodeOptions { version: 2, compression: Compression::None };
        RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
        if bytes.len() > most && before > 0 {
            bytes.truncate(most.max(before));
            break;
        }
    }
    bytes.freeze()
}
