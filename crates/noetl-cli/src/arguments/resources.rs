//! Arguments of `noetl credential`, `subscription`, `workers`, and `token`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DbArguments, RemoteArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// Store a credential, replacing any credential of that name.
    Set(SetCredentialArguments),
    /// List credentials without their secret data.
    List(CredentialsArguments),
    /// Print a credential; secret data only with --include-data.
    Get(GetCredentialArguments),
    /// Delete a credential from the server.
    Delete(CredentialArguments),
    /// Bind every encrypted value of a database to its tenant and name.
    ///
    /// Run it when all servers on the database have this version: earlier versions can't read the
    /// values afterwards. It requires the encryption key and is safe to repeat. On Postgres,
    /// servers may keep running; on SQLite, stop the server first.
    Reseal(DbArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum GetCommand {
    /// Print a credential; secret data only with --include-data.
    Credential(GetCredentialArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SetCredentialArguments {
    /// Name of the credential.
    pub(crate) name: String,
    /// Type of the credential, such as postgres, bearer, or s3.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: String,
    /// File with the secret data as a JSON or YAML object; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Secret value to set. Other users of this machine can see it while the command runs; use a
    /// file or stdin to avoid that. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Description of the credential's purpose.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CredentialsArguments {
    /// Type of the credentials to list.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Text that the name or description must contain.
    #[arg(long, value_name = "TEXT")]
    pub(crate) find: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct GetCredentialArguments {
    /// Print the secret data, too.
    #[arg(long)]
    pub(crate) include_data: bool,
    #[command(flatten)]
    pub(crate) of: CredentialArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CredentialArguments {
    /// Name or ID of the credential.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SubscriptionCommand {
    /// Register a subscription whose document is in the catalog.
    Register(SubscribeArguments),
    /// List all subscriptions, including deactivated ones.
    List(SubscriptionsArguments),
    /// Show the status of a subscription.
    Get(SubscriptionArguments),
    /// Print events of a subscription: state changes and outcomes of messages.
    Events(SubscriptionEventsArguments),
    /// Activate a subscription, so that it receives messages.
    Activate(SubscriptionArguments),
    /// Pause a subscription, so that it receives no messages.
    Pause(SubscriptionArguments),
    /// Resume a paused subscription.
    Resume(SubscriptionArguments),
    /// Finish the messages in flight and receive no more.
    Drain(SubscriptionArguments),
    /// End a subscription from any state.
    Deactivate(SubscriptionArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SubscribeArguments {
    /// Catalog path of the subscription document.
    pub(crate) path: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SubscriptionsArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SubscriptionArguments {
    /// ID of the subscription.
    #[arg(value_name = "ID")]
    pub(crate) id: i64,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SubscriptionEventsArguments {
    /// Sequence number after which to start.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u64,
    /// Maximum number of events.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) of: SubscriptionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WorkersArguments {
    /// Status of the workers to list.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Text that the name must contain.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it. It can't be printed later.
    Create(CreateTokenArguments),
    /// List all tokens, including revoked and expired ones.
    List(TokensArguments),
    /// Revoke a token immediately.
    Revoke(RevokeTokenArguments),
    /// Print the authorization header for a server, for use with curl: `curl --header @<(noetl
    /// token header) URL`.
    Header(ShownTokenArguments),
    /// Print a link that signs in one browser, valid once within ten minutes.
    Link(ShownTokenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShownTokenArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

/// Direct database access, to create the first token or to replace lost ones.
#[derive(Debug, Args)]
pub(crate) struct DirectArguments {
    /// Database to access directly, without a server: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["client.server_url", "host", "context", "client.token"])]
    pub(crate) database_url: Option<String>,
    /// Tenant of the tokens, with --database-url [default: default].
    #[arg(long, value_name = "NAME", requires = "database_url")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CreateTokenArguments {
    /// Name that tells the token's purpose.
    #[arg(long, value_name = "TEXT", default_value = "cli")]
    pub(crate) name: String,
    /// Role of the token: admin, operator, author, viewer, or worker.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: String,
    /// Lifetime of the token, such as 90s, 30m, 12h, 7d, or 4w [default: unlimited].
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) expires: Option<u64>,
    /// Pool whose steps the token may run, for role worker [default: any pool].
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// File to write the token to instead of stdout, readable only by its owner. If the file
    /// exists, no token is created.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) direct: DirectArguments,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TokensArguments {
    #[command(flatten)]
    pub(crate) direct: DirectArguments,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeTokenArguments {
    /// ID of the token: the part between its first two `_`.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) direct: DirectArguments,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

/// Parses a duration with a unit (`s`, `m`, `h`, `d`, or `w`; default `s`) into seconds.
///
/// Rejects zero.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no time; write 90s, 30m, 12h, 7d or 4w");
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_are_parsed_with_their_unit() {
        for (text, expected) in
            [("90", 90), ("90s", 90), ("2m", 120), ("1h", 3600), ("4w", 2_419_200)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in
            ["", "d", "0", "-1d", "1.5h", "1y", "99999999999999999999w", "18446744073709551615w"]
        {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
