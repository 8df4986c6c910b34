//! Connects to a server: selects the URL and the token, and explains failed requests.

use std::path::Path;
use std::process::ExitCode;

use noetl_api::{Access, ApiCall, Client, ClientError, EventFollower, Response};
use noetl_config::{Origin, Settings, tree};
use serde::de::DeserializeOwned;

use crate::arguments::RemoteArguments;
use crate::contexts::{self, Contexts};
use crate::dev_token;
use crate::error::{CliError, ErrorKind};
use crate::output::OutputFormat;
use crate::settings;

/// Default server URL, which is the default address of `noetl dev`.
const DEFAULT: &str = "http://127.0.0.1:8082";

/// Variable and flag of the server URL.
const SERVER_URL: &str = "NOETL_SERVER_URL";

const AUTHORITIES: &str = "NOETL_TLS_CA";
const CERTIFICATE: &str = "NOETL_TLS_CLIENT_CERT";
const KEY: &str = "NOETL_TLS_CLIENT_KEY";

/// Client of a server, with the output format for its responses.
pub(crate) struct Remote {
    pub(crate) client: Client,
    pub(crate) form: OutputFormat,
    /// Source of the server URL, such as a flag or a variable, for messages.
    pub(crate) origin: String,
    /// Whether requests carry a token.
    pub(crate) has_token: bool,
}

/// Returns the access token for the selected server, or a failure if there is none.
pub(crate) fn token(arguments: &RemoteArguments) -> Result<String, CliError> {
    ServerTarget::select(arguments, &arguments.flags.settings())?.token.ok_or_else(|| {
        CliError::new(ErrorKind::User, "there is no token for this server").hint(
            "give one with --token, NOETL_TOKEN or a context; `noetl dev` makes one for its \
             loopback address, and none with --auth open",
        )
    })
}

/// Runs `work` with a client of the selected server.
pub(crate) fn run(
    arguments: &RemoteArguments,
    work: impl AsyncFnOnce(Remote) -> Result<ExitCode, CliError>,
) -> Result<ExitCode, CliError> {
    let remote = Remote::open(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(work(remote))
}

impl Remote {
    /// Creates a client of the selected server, with its token and TLS settings.
    pub(crate) fn open(arguments: &RemoteArguments) -> Result<Self, CliError> {
        Self::with_settings(arguments, &arguments.flags.settings())
    }

    /// Creates a client of the server that settings select, with the context of the arguments.
    pub(crate) fn with_settings(
        arguments: &RemoteArguments,
        settings: &Settings,
    ) -> Result<Self, CliError> {
        let ServerTarget { url, token, origin } = ServerTarget::select(arguments, settings)?;
        let settings: tree::Client = settings::section()?;
        let authorities = settings.tls_ca.as_deref().map(|path| read(AUTHORITIES, path));
        let authorities = authorities.transpose()?;
        let access = Access { token, authorities, identity: identity(&settings)? };
        let has_token = access.token.is_some();
        let client = Client::with(&url, &access).map_err(|error| {
            let failure = CliError::from_error(ErrorKind::User, &error);
            match error {
                ClientError::Address(_) => {
                    failure.about(&origin).hint(format!("write an address as {DEFAULT}"))
                }
                _ => failure,
            }
        })?;
        Ok(Self { client, form: arguments.form(), origin, has_token })
    }

    /// Sends a request and parses the response.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        call: ApiCall<T>,
    ) -> Result<Response<T>, CliError> {
        self.client.ask(call).await.map_err(|error| self.failure(&error))
    }

    /// Reads an event stream, starting after the given position.
    pub(crate) fn follow(&self, call: ApiCall<()>, after: u64) -> EventFollower {
        self.client.follow(call, after)
    }

    /// Converts a failed request to a failure with a hint.
    pub(crate) fn failure(&self, error: &ClientError) -> CliError {
        let base = &self.client.address();
        match error {
            ClientError::Transport(_) => {
                CliError::from_error(ErrorKind::Config, error).about(base).hint(
                    "start a server with `noetl dev`, or name another with --server-url or \
                     `noetl context use`",
                )
            }
            ClientError::Shape(_) => CliError::from_error(ErrorKind::Config, error)
                .about(base)
                .hint("something else may listen there, or a server of another version"),
            ClientError::Address(_) | ClientError::Access(_) => {
                CliError::from_error(ErrorKind::User, error)
            }
            ClientError::Refused { status, body } => {
                let kind =
                    if matches!(status, 429 | 500..) { ErrorKind::Config } else { ErrorKind::User };
                let failure = CliError::new(kind, body.error.clone());
                match (status, self.has_token) {
                    (401, false) if is_localhost(self.client.base().host_str()) => failure.hint(
                        "the token of `noetl dev` is shown to an address and never to a name: \
                         write 127.0.0.1 instead of localhost, or give a token with --token or \
                         NOETL_TOKEN",
                    ),
                    (401, false) => failure.hint(
                        "give a token with --token, NOETL_TOKEN or `noetl context update NAME \
                         --token -`; an admin makes one with `noetl token create`",
                    ),
                    (401, true) => failure.hint(
                        "the token is not one of this server, or does not count any more; an \
                         admin makes another with `noetl token create`",
                    ),
                    (403, _) => failure.hint(
                        "`noetl doctor` says which role you have; an admin makes a token of \
                         another with `noetl token create --role ROLE`",
                    ),
                    (429 | 502..=504, _) => failure.hint("try again in a moment"),
                    _ => failure,
                }
            }
        }
    }
}

/// Selected server, with the access token for it.
#[derive(Debug, PartialEq, Eq)]
struct ServerTarget {
    url: String,
    token: Option<String>,
    origin: String,
}

fn is_localhost(host: Option<&str>) -> bool {
    host.is_some_and(|host| host.eq_ignore_ascii_case("localhost"))
}

impl ServerTarget {
    /// Returns the server named by the arguments, the environment, or the current context, with its
    /// token: the given one, else that of a `noetl dev` of this user at that address.
    fn select(arguments: &RemoteArguments, settings: &Settings) -> Result<Self, CliError> {
        let mut target =
            Self::chosen(arguments, settings, || contexts::file().and_then(Contexts::read))?;
        if target.token.is_none() {
            target.token = dev_token::for_server(&target.url)?;
        }
        Ok(target)
    }

    /// Selects the server: flags first, then the environment, then the files, then the current
    /// context. The token of a context is sent only to the server of that context, and the token of
    /// a file only to the server of a file.
    fn chosen(
        arguments: &RemoteArguments,
        settings: &Settings,
        contexts: impl FnOnce() -> Result<Contexts, CliError>,
    ) -> Result<Self, CliError> {
        let client: tree::Client = settings::decode(settings)?;
        let token = client.token.as_ref().map(|token| token.expose().to_owned());
        let (flag_token, of_file) = match settings.origin_of("client.token") {
            Origin::File(_) => (None, token),
            _ => (token, None),
        };
        let plain = |url: String, origin: &str| Self {
            url,
            token: flag_token.clone(),
            origin: origin.to_owned(),
        };
        let origin = settings.origin_of("client.server_url");
        if let (Some(url), Origin::Flag(_)) = (&client.server_url, &origin) {
            return Ok(plain(url.clone(), &settings.name_of(SERVER_URL)));
        }
        if let (Some(host), Some(port)) = (&arguments.host, arguments.port) {
            let host = if host.contains(':') && !host.starts_with('[') {
                format!("[{host}]")
            } else {
                host.clone()
            };
            return Ok(plain(format!("http://{host}:{port}"), "--host and --port"));
        }
        if arguments.context.is_none()
            && let Some(url) = client.server_url
        {
            let target = plain(url, &settings.name_of(SERVER_URL));
            let is_of_file = matches!(origin, Origin::File(_));
            return Ok(match is_of_file {
                true => Self { token: target.token.or(of_file), ..target },
                false => target,
            });
        }
        let context = match &arguments.context {
            Some(name) => Some(contexts()?.named(name)?),
            // Without a home directory there are no contexts, which is fine if none is requested.
            None if settings::variable("HOME").is_none() => None,
            None => {
                let contexts = contexts()?;
                contexts.current().map(|name| contexts.named(name)).transpose()?
            }
        };
        let Some(context) = context else { return Ok(plain(DEFAULT.to_owned(), "default")) };
        let url = context.server_url.ok_or_else(|| {
            let name = &context.name;
            CliError::new(ErrorKind::Config, format!("the context '{name}' has no server_url"))
                .hint(format!("set it with `noetl context update {name} --server-url URL`"))
        })?;
        let origin = format!("context '{}'", context.name);
        Ok(Self { url, token: flag_token.or(context.token), origin })
    }
}

fn identity(settings: &tree::Client) -> Result<Option<Vec<u8>>, CliError> {
    match (&settings.tls_client_cert, &settings.tls_client_key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let mut pem = read(CERTIFICATE, certificate)?;
            pem.push(b'\n');
            pem.extend(read(KEY, key)?);
            Ok(Some(pem))
        }
        (one, _) => {
            let (has, lacks) = if one.is_some() { (CERTIFICATE, KEY) } else { (KEY, CERTIFICATE) };
            let message = format!("{has} is set and {lacks} is not");
            Err(CliError::new(ErrorKind::Config, message).hint("a client's certificate needs both"))
        }
    }
}

fn read(name: &str, path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|error| {
        let (name, path) = (settings::current().name_of(name), path.display());
        CliError::new(ErrorKind::Config, format!("{name}: {path} cannot be read: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use noetl_config::FileLayer;

    use super::*;
    use crate::arguments::Flags;

    const FILE: &str = "current_context: a\ncontexts:\n  a: {server_url: 'http://a', token: ta}\n  \
                        b: {server_url: 'http://b'}\n  c: {}\n";

    fn flag(key: &str, value: &str) -> RemoteArguments {
        let flags = Flags::with_values([(key, Some(value))]);
        RemoteArguments { flags, ..RemoteArguments::default() }
    }

    fn chosen(
        arguments: &RemoteArguments,
        variables: &[(&str, &str)],
    ) -> Result<(String, Option<String>), String> {
        let home = tempfile::TempDir::new().expect("a directory");
        let file = home.path().join("config.yaml");
        std::fs::write(&file, FILE).expect("a file");
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let settings = arguments.flags.over(&Settings::new(Vec::new(), variables));
        let target = ServerTarget::chosen(arguments, &settings, || Contexts::read(file));
        target.map(|target| (target.url, target.token)).map_err(|failure| failure.text())
    }

    fn is(url: &str, token: Option<&str>) -> Result<(String, Option<String>), String> {
        Ok((url.to_owned(), token.map(str::to_owned)))
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_current_context() {
        let none = RemoteArguments::default();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(chosen(&none, &[]), is("http://a", Some("ta")));
        let variable = [("NOETL_SERVER_URL", "http://v")];
        assert_eq!(chosen(&none, &variable), is("http://v", None));
        let context = RemoteArguments { context: text("b"), ..none.clone() };
        assert_eq!(chosen(&context, &variable), is("http://b", None));
        let host = RemoteArguments { host: text("::1"), port: Some(1), ..none.clone() };
        assert_eq!(chosen(&host, &variable), is("http://[::1]:1", None));
        let url = flag("client.server_url", "http://u");
        assert_eq!(chosen(&url, &variable), is("http://u", None));
    }

    #[test]
    fn a_context_token_is_sent_only_to_its_server() {
        let url = flag("client.server_url", "http://u");
        assert_eq!(chosen(&url, &[]), is("http://u", None));
        assert_eq!(chosen(&url, &[("NOETL_SESSION_TOKEN", "s")]), is("http://u", Some("s")));
        let both = [("NOETL_SESSION_TOKEN", "s"), ("NOETL_TOKEN", "t")];
        assert_eq!(chosen(&url, &both), is("http://u", Some("t")));
        let token_flag = flag("client.token", "g");
        assert_eq!(chosen(&token_flag, &both), is("http://a", Some("g")));
    }

    #[test]
    fn a_token_of_a_file_is_sent_only_to_a_server_of_a_file() {
        let chosen = |text: &str, variables: &[(&str, &str)]| {
            let file = FileLayer::parse(Path::new("noetl.toml"), text.as_bytes(), true);
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
            let settings = Settings::new(vec![file.expect("a file")], variables);
            let none = || Err(CliError::new(ErrorKind::Config, "no contexts"));
            let target = ServerTarget::chosen(&RemoteArguments::default(), &settings, none);
            target.map(|target| (target.url, target.token)).map_err(|failure| failure.text())
        };
        let both = "[client]\nserver_url = 'http://f'\ntoken = 't'";
        assert_eq!(chosen(both, &[]), is("http://f", Some("t")));
        assert_eq!(chosen(both, &[("NOETL_TOKEN", "v")]), is("http://f", Some("v")));
        assert_eq!(chosen(both, &[("NOETL_SERVER_URL", "http://v")]), is("http://v", None));
    }

    #[test]
    fn a_missing_context_or_one_without_a_server_is_reported() {
        let named = |name: &str| RemoteArguments {
            context: Some(name.to_owned()),
            ..RemoteArguments::default()
        };
        let message = chosen(&named("x"), &[]).expect_err("no such context");
        assert!(message.starts_with("there is no context 'x' in "), "{message}");
        let message = chosen(&named("c"), &[]).expect_err("no server");
        assert_eq!(message, "the context 'c' has no server_url");
    }
}
