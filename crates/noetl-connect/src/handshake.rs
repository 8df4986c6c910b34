//! The start of a connection: `hello` and `welcome`.

use std::time::Duration;

use noetl_access::Caller;
use noetl_api::Id;
use noetl_api::connection::{FRAME_MAX, Hello, PROTOCOL, ProtocolError, ServerMessage, Welcome};
use noetl_model::CommandId;
use noetl_remote::{ConnectionCaller, Resumed, WorkerDeclaration, WorkerSession};

use crate::errors::End;
use crate::host::{ConnectionFailure, ConnectionHost, Refusal};

/// Opens the session of a worker. Returns it with the frame that welcomes the worker.
pub(crate) async fn open(
    host: &ConnectionHost,
    caller: &Caller,
    hello: Hello,
) -> Result<(WorkerSession, String), End> {
    if hello.protocol != PROTOCOL {
        let message =
            format!("this server supports version {PROTOCOL}, not version {}", hello.protocol);
        return Err(End::invalid(ProtocolError::new("unsupported_protocol", message)));
    }
    let slots = hello.slots;
    let opened = begin(host, caller, hello).await;
    let (session, resumed) = opened.map_err(End::rejected)?;
    let ids = |commands: Vec<CommandId>| commands.into_iter().map(Id::from).collect();
    let welcome = Welcome {
        protocol: PROTOCOL,
        session: session.id().to_owned(),
        heartbeat_seconds: session.heartbeat().as_secs(),
        silence_seconds: session.silence().as_secs(),
        lease_seconds: session.lease().as_secs(),
        frame_max_bytes: FRAME_MAX,
        slots,
        keep: ids(resumed.keep),
        drop: ids(resumed.drop),
        cancel: ids(resumed.cancel),
    };
    let text = serde_json::to_string(&ServerMessage::Welcome(Box::new(welcome)));
    Ok((session, text.expect("messages have text keys only")))
}

async fn begin(
    host: &ConnectionHost,
    caller: &Caller,
    hello: Hello,
) -> Result<(WorkerSession, Resumed), Refusal> {
    let mut pools = Vec::with_capacity(hello.pools.len());
    for pool in hello.pools {
        pools.extend((host.conversions.pool)(caller, Some(pool))?);
    }
    if pools.is_empty() {
        pools.extend((host.conversions.pool)(caller, None)?);
    }
    let kinds = hello.kinds.filter(|_| !hello.other_kinds);
    let declaration = WorkerDeclaration {
        name: hello.worker_id,
        public_key: hello.public_key,
        pools,
        kinds: kinds.map(|kinds| kinds.into_iter().map(|kind| kind.name).collect()),
        slots: hello.slots,
        lease: hello.lease_seconds.map(Duration::from_secs),
    };
    let holds: Vec<CommandId> = hello.holds.into_iter().map(Into::into).collect();
    let failed = |error| host.refusal(ConnectionFailure::Connect(error));
    declaration.check(host.leasing.duration(), &holds).map_err(failed)?;
    let (mut own, mut foreign) = (Vec::with_capacity(holds.len()), Vec::new());
    for command in holds {
        match host.owns(caller, command).await? {
            true => own.push(command),
            false => foreign.push(command),
        }
    }
    let identity = ConnectionCaller {
        tenant: host.tenant.clone(),
        scope: caller.scope(),
        actor: caller.actor.clone(),
    };
    let opened = host.connections.open(identity, declaration, own).await;
    let (session, mut resumed) = opened.map_err(failed)?;
    resumed.drop.extend(foreign);
    Ok((session, resumed))
}
