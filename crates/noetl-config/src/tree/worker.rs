//! Settings of `noetl worker` and of commands that call a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::kind::Kind;
use crate::secret::Secret;
use crate::setting::{Setting, section};

section! {
    /// Process of `noetl worker`.
    Worker = "worker" {
        /// File with an access token of role worker; `-` reads stdin.
        token_file: Option<PathBuf> = Setting::new(Kind::Path, &["NOETL_TOKEN_FILE"])
            .flag("token-file", "FILE").secret_file();
        /// Maximum number of steps to run at a time.
        slots: usize = Setting::new(Kind::Number { min: 1, max: 10_000 }, &["NOETL_WORKER_SLOTS"])
            .default("16").flag("slots", "N");
        /// Pool whose steps to run.
        pool: Option<String> = Setting::new(Kind::Text, &["NOETL_WORKER_POOL"])
            .note("shared").flag("pool", "POOL");
        /// Label to show in `noetl workers`. Repeatable; labels of all layers are joined.
        labels: Option<Vec<String>> = Setting::new(Kind::List, &["NOETL_WORKER_LABELS"])
            .flag("label", "KEY=VALUE").joined();
        /// Worker name, unique among all processes.
        name: Option<String> = Setting::new(Kind::Text, &["NOETL_WORKER_NAME"])
            .note("generated").flag("name", "NAME");
        /// Address to serve `GET /health` and `GET /metrics` on; port 0 picks a free port.
        listen: Option<SocketAddr> = Setting::new(Kind::Socket, &["NOETL_WORKER_LISTEN"])
            .flag("listen", "ADDRESS:PORT").guarded();
        /// Maximum size of a step's result, in MiB.
        result_max_mb: usize =
            Setting::new(Kind::Number { min: 1, max: 512 }, &["NOETL_WORKER_RESULT_MAX_MB"])
                .default("64").flag("result-max", "MIB").guarded();
        /// Seconds that running steps may take to finish on shutdown; unfinished commands are
        /// released.
        grace_secs: Duration =
            Setting::new(Kind::Seconds { min: 0, max: 86_400 }, &["NOETL_WORKER_GRACE_SECS"])
                .default("30").flag("grace", "SECONDS");
        /// Channel for commands: `connection` is a WebSocket, or long polls if the server has
        /// none; `long_poll` are long polls only. With a command stream, always long polls.
        transport: String =
            Setting::new(Kind::Choice(&["connection", "long_poll"]), &["NOETL_WORKER_TRANSPORT"])
                .default("connection");
        /// Work of the process: `worker` runs steps, `subscription` runs one subscription.
        mode: Option<String> =
            Setting::new(Kind::Choice(&["worker", "subscription"]), &["WORKER_MODE"])
                .note("worker");
        /// Catalog path of the subscription to run in that mode.
        subscription_path: Option<String> =
            Setting::new(Kind::Text, &["NOETL_SUBSCRIPTION_PATH"]);
    }
}

section! {
    /// Server that a command or a worker calls.
    Client = "client" {
        /// Server URL, such as http://host:8082. A URL in a file wins over the current context.
        server_url: Option<String> = Setting::new(Kind::Text, &["NOETL_SERVER_URL"])
            .note("that of the current context, else http://127.0.0.1:8082")
            .flag("server-url", "URL").url();
        /// Access token. A token in a file is sent only to a server that a file names.
        token: Option<Secret> =
            Setting::new(Kind::Text, &["NOETL_TOKEN", "NOETL_SESSION_TOKEN"])
                .note("that of the context").flag("token", "TOKEN").secret();
        /// PEM file with authorities to trust in addition to those of the system.
        tls_ca: Option<PathBuf> = Setting::new(Kind::Path, &["NOETL_TLS_CA"]).guarded();
        /// PEM file with the certificate of the client.
        tls_client_cert: Option<PathBuf> =
            Setting::new(Kind::Path, &["NOETL_TLS_CLIENT_CERT"]).guarded();
        /// PEM file with the private key of the client's certificate.
        tls_client_key: Option<PathBuf> =
            Setting::new(Kind::Path, &["NOETL_TLS_CLIENT_KEY"]).secret_file();
    }
}
