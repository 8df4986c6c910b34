//! Sends audit records as syslog messages (RFC 5424), over a Unix socket or UDP.

use std::io::{self, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::{UnixDatagram, UnixStream};

use noetl_api::credentials::SecretAuditRow;
use serde_json::Value;

use crate::arguments::SyslogAddress;
use crate::error::{CliError, ErrorKind};

/// Facility "log audit", with severity "informational" and "warning".
const DONE: u8 = 13 * 8 + 6;
const REFUSED: u8 = 13 * 8 + 4;

/// A connected socket of one of the supported types.
enum Socket {
    Datagrams(UnixDatagram),
    Stream(UnixStream),
    Udp(UdpSocket),
}

/// A connection to a syslog daemon.
pub(super) struct Syslog {
    socket: Socket,
    host: String,
    address: String,
}

impl Syslog {
    /// Connects to the syslog socket. For a Unix path, tries a datagram socket first and then a
    /// stream.
    pub(super) fn connect(address: &SyslogAddress) -> Result<Self, CliError> {
        let (socket, name) = match address {
            SyslogAddress::Unix(path) => {
                let datagrams = UnixDatagram::unbound().and_then(|socket| {
                    socket.connect(path)?;
                    Ok(Socket::Datagrams(socket))
                });
                // Some daemons use a stream socket at that path.
                let socket = datagrams.or_else(|_| UnixStream::connect(path).map(Socket::Stream));
                (socket, path.display().to_string())
            }
            SyslogAddress::Udp(host) => {
                let any = if host.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
                let socket = UdpSocket::bind(any).and_then(|socket| {
                    socket.connect(host)?;
                    Ok(Socket::Udp(socket))
                });
                (socket, host.clone())
            }
        };
        let socket = socket.map_err(|error| failed(&name, &error))?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { socket, host: header(&host, 255), address: name })
    }

    /// Sends one record as one message. Over UDP, `Ok` doesn't mean that syslog received it.
    pub(super) fn send(&mut self, row: &SecretAuditRow, record: &Value) -> Result<(), CliError> {
        let message = message(row, record, &self.host);
        let sent = match &mut self.socket {
            Socket::Datagrams(socket) => socket.send(message.as_bytes()).map(|_| ()),
            Socket::Udp(socket) => socket.send(message.as_bytes()).map(|_| ()),
            // Messages on a stream are framed by their lengths (RFC 6587).
            Socket::Stream(socket) => write!(socket, "{} {message}", message.len()),
        };
        sent.map_err(|error| failed(&self.address, &error))
    }
}

/// Returns a record in the format of RFC 5424, with the JSON object as its message.
fn message(row: &SecretAuditRow, record: &Value, host: &str) -> String {
    let priority = if row.outcome == "ok" { DONE } else { REFUSED };
    let (time, process) = (row.occurred_at, std::process::id());
    let operation = header(&row.operation, 32);
    format!("<{priority}>1 {time} {host} noetl {process} {operation} - {record}")
}

/// Returns a field of the header: printable ASCII without spaces, at most `longest` characters, or
/// `-` if none is left.
fn header(text: &str, longest: usize) -> String {
    let printable: String = text.chars().filter(char::is_ascii_graphic).take(longest).collect();
    if printable.is_empty() { "-".to_owned() } else { printable }
}

fn failed(address: &str, error: &io::Error) -> CliError {
    CliError::from_error(ErrorKind::Config, error).about(&format!("syslog at {address}"))
}

#[cfg(test)]
mod tests {
    use noetl_api::Id;
    use noetl_model::Timestamp;
    use serde_json::json;

    use super::*;

    fn row(outcome: &str) -> SecretAuditRow {
        SecretAuditRow {
            audit_id: Id::text(1),
            occurred_at: Timestamp::from_micros(1_767_323_045_000_000),
            credential: "db".to_owned(),
            operation: "token.create\n<0>1 forged".to_owned(),
            outcome: outcome.to_owned(),
            worker_id: Some("token:1".to_owned()),
            execution_id: None,
            parent_execution_id: None,
            kek_version: None,
            notes: None,
        }
    }

    fn check(text: &str, priority: u8) {
        let (head, json) = text.split_once(" - ").expect("a message without structured data");
        let fields: Vec<&str> = head.split(' ').collect();
        assert_eq!(fields.len(), 6, "{head}");
        assert_eq!(fields[0], format!("<{priority}>1"));
        assert!(fields[1].starts_with("2026-01-02T03:04:05"), "{head}");
        assert_eq!((fields[3], fields[5]), ("noetl", "token.create<0>1forged"));
        let record: Value = serde_json::from_str(json).expect("a JSON object");
        assert_eq!(record["actor"], "token:1");
    }

    #[test]
    fn records_reach_a_unix_socket_in_rfc_5424_format() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("log");
        let daemon = UnixDatagram::bind(&path).expect("a socket");
        let mut syslog = Syslog::connect(&SyslogAddress::Unix(path)).expect("connected");
        for (outcome, priority) in [("ok", 110), ("denied", 108)] {
            syslog.send(&row(outcome), &json!({"actor": "token:1"})).expect("sent");
            let mut buffer = [0; 4096];
            let length = daemon.recv(&mut buffer).expect("a message");
            check(std::str::from_utf8(&buffer[..length]).expect("text"), priority);
        }
    }

    #[test]
    fn records_reach_a_udp_socket() {
        let daemon = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = daemon.local_addr().expect("an address").to_string();
        let mut syslog = Syslog::connect(&SyslogAddress::Udp(address)).expect("connected");
        syslog.send(&row("ok"), &json!({"actor": "token:1"})).expect("sent");
        let mut buffer = [0; 4096];
        let length = daemon.recv(&mut buffer).expect("a message");
        check(std::str::from_utf8(&buffer[..length]).expect("text"), 110);
    }

    #[test]
    fn an_unreachable_syslog_is_reported_with_its_address() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("none");
        let message = Syslog::connect(&SyslogAddress::Unix(path)).err().expect("no socket").text();
        assert!(message.contains("syslog at"), "{message}");
    }
}
