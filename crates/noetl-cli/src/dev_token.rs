//! Stores the access token of `noetl dev` in a file that the CLI of the same user finds.
//!
//! There is one file per listen address, in the user's runtime directory (`XDG_RUNTIME_DIR`), or in
//! the data directory if that variable is not set. Only its owner can read the file, and the CLI
//! ignores a file of another owner or with wider access. The CLI sends the token only to a server
//! whose URL contains that loopback address as an IP address: a host name could resolve to
//! anything. On Linux it also checks that the listening socket belongs to its own user, so that
//! another user can't collect tokens on the port of a stopped server.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use noetl_api::loopback_address;
use noetl_config::tree::Database;
use noetl_control::ControlPlane;
use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use rustix::process::geteuid;

use crate::error::{CliError, ErrorKind};
use crate::settings;

/// Maximum size of a token, in bytes.
const TOKEN_MAX: u64 = 4096;

/// Returns the path of the token file for a listen address.
pub(crate) fn file(address: SocketAddr, data: &Path) -> PathBuf {
    let directory = match settings::variable("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory).join("noetl"),
        None => data.join("run"),
    };
    directory.join(name(address))
}

/// Returns the file name for a listen address. A wildcard address maps to loopback, because that is
/// where the CLI connects.
fn name(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("{ip}-{}.token", address.port())
}

/// Returns the token for a server, if its URL is the loopback address of a `noetl dev` of this user.
pub(crate) fn for_server(url: &str) -> Result<Option<String>, CliError> {
    let Some(address) = loopback_address(url) else { return Ok(None) };
    let data = settings::section::<Database>()?.data;
    let runtime = settings::variable("XDG_RUNTIME_DIR")
        .map(|directory| PathBuf::from(directory).join("noetl"));
    let places = runtime.into_iter().chain([data.join("run")]);
    let token = places.into_iter().find_map(|place| read(&place.join(name(address))));
    Ok(token.filter(|_| listens_for_this_user(address)))
}

/// Returns the token in a file that only this user can read.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.uid() != geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(TOKEN_MAX).read_to_string(&mut text).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

/// Ensures that the file contains an admin token that the control plane accepts.
///
/// Otherwise creates a new token, after revoking earlier tokens for this address whose file is
/// lost.
pub(crate) async fn ensure(
    control: &ControlPlane,
    path: &Path,
    address: SocketAddr,
) -> Result<(), CliError> {
    let failed = |error: &dyn std::error::Error| {
        CliError::from_error(ErrorKind::Config, error)
            .about("could not make the token of this server")
    };
    if let Some(token) = read(path) {
        let holder = control.secrets.tokens.holder(&token).await.map_err(|error| failed(&error))?;
        if holder.is_some_and(|holder| holder.role == Role::Admin) {
            return Ok(());
        }
    }
    let (tenant, actor) = (Tenant::default(), "noetl dev");
    let name = format!("noetl dev on {address}");
    let administration = control.secrets.administration();
    let known = control.secrets.tokens.list(&tenant).await.map_err(|error| failed(&error))?;
    let lost = known.iter().filter(|token| token.kept.name == name && token.revoked_at.is_none());
    for token in lost {
        let revoked = administration.revoke_token(&tenant, actor, &token.kept.id).await;
        revoked.map_err(|error| failed(&error))?;
    }
    let request = TokenRequest { name, role: Role::Admin, lasts: None, pool: None };
    let made = administration.create_token(&tenant, actor, request).await;
    let (_, token) = made.map_err(|error| failed(&error))?;
    write(path, &token).map_err(|error| {
        let about = format!("could not write {}", path.display());
        CliError::from_error(ErrorKind::Config, &error).about(&about)
    })
}

/// Replaces the file atomically. No other user can read it at any time.
fn write(path: &Path, token: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = writeln!(file, "{token}").and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&draft, path)).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

/// Returns `true` if the process that listens on an address runs as this user, or if the system
/// doesn't report the user.
fn listens_for_this_user(address: SocketAddr) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let tables: Vec<String> = tables.into_iter().flatten().collect();
    if tables.is_empty() {
        return true;
    }
    let uid = geteuid().as_raw();
    tables.iter().flat_map(|table| table.lines()).any(|line| listener(line, address) == Some(uid))
}

/// Returns the user ID in a line of `/proc/net/tcp` or `tcp6`, or `None` if the line's socket
/// doesn't listen on the address.
fn listener(line: &str, address: SocketAddr) -> Option<u32> {
    const LISTEN: &str = "0A";
    let mut columns = line.split_whitespace().skip(1);
    let (ip, port) = columns.next()?.split_once(':')?;
    let state = columns.nth(1)?;
    let uid = columns.nth(3)?;
    if state != LISTEN || u16::from_str_radix(port, 16).ok()? != address.port() {
        return None;
    }
    let ip = socket_ip(ip)?;
    (ip == address.ip() || ip.is_unspecified()).then(|| uid.parse().ok()).flatten()
}

/// Parses an IP address as the kernel prints it: 32-bit words in native byte order.
fn socket_ip(text: &str) -> Option<IpAddr> {
    let word =
        |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?);
            Some(ip.to_ipv4_mapped().map_or(ip.into(), IpAddr::from))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_token_file_is_read_only_if_it_is_private() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("run/127.0.0.1-8082.token");
        assert_eq!(read(&path), None);
        write(&path, "one").expect("written");
        write(&path, "two").expect("replaced");
        assert_eq!(read(&path).as_deref(), Some("two"));
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("a parent")), 0o700);
        for wider in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(wider)).expect("set");
            assert_eq!(read(&path), None, "{wider:o}");
        }
    }

    #[test]
    fn the_token_file_of_a_wildcard_address_has_the_loopback_name() {
        assert_eq!(name(address("0.0.0.0:8082")), "127.0.0.1-8082.token");
        assert_eq!(name(address("[::]:8082")), "::1-8082.token");
        assert_eq!(name(address("127.0.0.2:80")), "127.0.0.2-80.token");
    }

    #[test]
    fn host_names_are_not_loopback_addresses() {
        for url in ["http://127.0.0.1:8082", "http://127.0.0.1:8082/", "http://[::1]:8082"] {
            assert!(loopback_address(url).is_some(), "{url}");
        }
        for url in [
            "http://localhost:8082",
            "http://127.0.0.1.nip.io:8082",
            "http://user@10.0.0.1:8082",
            "http://127.0.0.1@evil.example:8082",
            "http://[::2]:8082",
            "http://0.0.0.0:8082",
            "127.0.0.1:8082",
        ] {
            assert_eq!(loopback_address(url), None, "{url}");
        }
    }

    #[test]
    fn the_user_of_a_listening_socket_is_read_from_the_socket_table() {
        let listening = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listening.local_addr().expect("an address");
        assert!(listens_for_this_user(own));
        drop(listening);
        let line = |ip: &str, state: &str, uid: u32| {
            format!(
                "   0: {ip}:1F92 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {uid} 0 1 1"
            )
        };
        let asked = address("127.0.0.1:8082");
        let loopback = Ipv4Addr::LOCALHOST.octets();
        let loopback = format!("{:08X}", u32::from_ne_bytes(loopback));
        assert_eq!(listener(&line(&loopback, "0A", 1000), asked), Some(1000));
        assert_eq!(listener(&line("00000000", "0A", 7), asked), Some(7));
        assert_eq!(listener(&line(&loopback, "01", 1000), asked), None, "a connection");
        assert_eq!(listener(&line(&loopback, "0A", 1000), address("127.0.0.1:8083")), None);
        assert_eq!(listener("sl local_address", asked), None);
    }
}
