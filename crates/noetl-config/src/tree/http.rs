//! Settings of the HTTP server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::kind::Kind;
use crate::secret::Secret;
use crate::setting::{Setting, section};

const COUNT: Kind = Kind::Number { min: 1, max: 1_000_000 };
const RATE: Kind = Kind::Number { min: 0, max: 1_000_000 };
const TIMEOUT: Kind = Kind::Seconds { min: 1, max: 3600 };

section! {
    /// HTTP server of `noetl dev` and `noetl server`.
    Server = "server" {
        /// Address to listen on. Without authentication of callers, only a loopback address is
        /// accepted.
        host: IpAddr = Setting::new(Kind::Ip, &["NOETL_HOST"])
            .default("127.0.0.1").flag("host", "HOST").guarded();
        /// Port to listen on; 0 picks a free port.
        port: u16 = Setting::new(Kind::Number { min: 0, max: 65_535 }, &["NOETL_PORT"])
            .default("8082").flag("port", "PORT");
        /// URL at which workers reach this server, if it differs from the listen address.
        public_url: Option<String> =
            Setting::new(Kind::Text, &["NOETL_PUBLIC_SERVER_URL"]).url();
        /// Maximum number of steps that the process of `noetl dev` runs at a time; 0 if only
        /// separate workers run steps.
        slots: usize = Setting::new(Kind::Number { min: 0, max: 10_000 }, &["NOETL_SLOTS"])
            .default("16").flag("slots", "N");
        /// Machine ID of this process in the IDs it mints.
        machine_id: Option<u16> =
            Setting::new(Kind::Number { min: 0, max: 1023 }, &["NOETL_SERVER_MACHINE_ID"])
                .note("acquired by lease").guarded();
        /// Leave out `GET /metrics`.
        disable_metrics: bool =
            Setting::new(Kind::Switch, &["NOETL_DISABLE_METRICS"]).default("false");
        /// Origins of web pages that may call the API, or `*` for any.
        cors_origins: Option<Vec<String>> =
            Setting::new(Kind::List, &["NOETL_CORS_ORIGINS"]).guarded();
        /// Addresses or networks of proxies whose forwarded client addresses are trusted.
        trusted_proxies: Option<Vec<String>> =
            Setting::new(Kind::List, &["NOETL_TRUSTED_PROXIES"]).guarded();
        /// PEM file with the TLS certificate of the listener, followed by its chain.
        tls_cert: Option<PathBuf> = Setting::new(Kind::Path, &["NOETL_TLS_CERT"]).guarded();
        /// PEM file with the private key of the certificate.
        tls_key: Option<PathBuf> = Setting::new(Kind::Path, &["NOETL_TLS_KEY"]).secret_file();
        /// PEM file with the authorities of client certificates. With it, clients must present one.
        tls_client_ca: Option<PathBuf> =
            Setting::new(Kind::Path, &["NOETL_TLS_CLIENT_CA"]).guarded();
        /// Token of the internal routes.
        internal_api_token: Option<Secret> =
            Setting::new(Kind::Text, &["NOETL_INTERNAL_API_TOKEN"]).secret();
        /// File with the token of the internal routes. It may change while the server runs.
        internal_api_token_file: Option<PathBuf> =
            Setting::new(Kind::Path, &["NOETL_INTERNAL_API_TOKEN_FILE"]).secret_file();
        /// Credential of the Postgres database with the sessions that a gateway validates.
        session_credential: Option<String> =
            Setting::new(Kind::Text, &["NOETL_SESSION_CREDENTIAL"]).guarded();
    }
}

section! {
    /// Authentication of callers of the API.
    Auth = "auth" {
        /// Authentication of callers: `token` requires an access token, `oidc` also accepts tokens
        /// of an identity provider, and `open` lets every user and program of this machine do
        /// everything. `noetl dev` creates and stores its token for you.
        mode: Option<String> = Setting::new(Kind::Choice(&["token", "oidc", "open"]), &["NOETL_AUTH"])
            .note("token in noetl dev, open in noetl server").flag("auth", "MODE").guarded();
        /// URL of the identity provider.
        oidc_issuer: Option<String> = Setting::new(Kind::Text, &["NOETL_OIDC_ISSUER"]).url();
        /// Audience that tokens of the identity provider must name.
        oidc_audience: Option<String> =
            Setting::new(Kind::Text, &["NOETL_OIDC_AUDIENCE"]).guarded();
        /// Claim with the roles of the caller.
        oidc_roles_claim: String = Setting::new(Kind::Text, &["NOETL_OIDC_ROLES_CLAIM"])
            .default("roles").guarded();
        /// Claim with the tenant of the caller.
        oidc_tenant_claim: Option<String> =
            Setting::new(Kind::Text, &["NOETL_OIDC_TENANT_CLAIM"]).guarded();
        /// Client ID of the web UI at the identity provider.
        oidc_client_id: Option<String> =
            Setting::new(Kind::Text, &["NOETL_OIDC_CLIENT_ID"]).guarded();
    }
}

section! {
    /// Limits of the HTTP server.
    Limits = "limits" {
        /// Maximum number of requests at a time, without those on routes that need no token.
        requests_max: usize = Setting::new(COUNT, &["NOETL_REQUESTS_MAX"]).default("1024").guarded();
        /// Maximum number of requests at a time on routes that need no token.
        anonymous_requests_max: usize =
            Setting::new(COUNT, &["NOETL_ANONYMOUS_REQUESTS_MAX"]).default("256").guarded();
        /// Time limit of a request, in seconds.
        request_timeout_secs: Duration =
            Setting::new(TIMEOUT, &["NOETL_REQUEST_TIMEOUT_SECS"]).default("60").guarded();
        /// Time limit of a request body on routes that need no token, in seconds.
        body_timeout_secs: Duration =
            Setting::new(TIMEOUT, &["NOETL_BODY_TIMEOUT_SECS"]).default("15").guarded();
        /// Minimum rate of a request body after five seconds, in bytes per second; 0 for none.
        body_min_rate: u64 =
            Setting::new(Kind::Number { min: 0, max: 1_000_000_000 }, &["NOETL_BODY_MIN_RATE"])
                .default("1024").guarded();
        /// Maximum number of event streams at a time.
        streams_max: usize = Setting::new(COUNT, &["NOETL_STREAMS_MAX"]).default("1024").guarded();
        /// Maximum number of event streams of one tenant at a time.
        tenant_streams_max: usize =
            Setting::new(COUNT, &["NOETL_TENANT_STREAMS_MAX"]).default("256").guarded();
        /// Maximum number of connections; at most what the limit of open files allows.
        connections_max: usize = Setting::new(COUNT, &["NOETL_CONNECTIONS_MAX"]).default("16384").guarded();
        /// Maximum requests per second of one tenant; 0 for no limit.
        rate_limit: u64 = Setting::new(RATE, &["NOETL_RATE_LIMIT"]).default("0").guarded();
        /// Maximum requests per second of one client address without a valid token; 0 for no limit.
        address_rate_limit: u64 =
            Setting::new(RATE, &["NOETL_ADDRESS_RATE_LIMIT"]).default("1000").guarded();
        /// Maximum messages per second to one listener from one client address; 0 for no limit.
        listener_rate_limit: u64 =
            Setting::new(RATE, &["NOETL_LISTENER_RATE_LIMIT"]).default("500").guarded();
    }
}
