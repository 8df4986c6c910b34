//! What can be said about credentials, subscriptions, workers and tokens.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DbArguments, RemoteArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// Keep a credential, in the place of any that has its name.
    Set(SetCredentialArguments),
    /// List credentials, without what is secret.
    List(CredentialsArguments),
    /// Print a credential.
    Get(GetCredentialArguments),
    /// Remove a credential.
    Delete(CredentialArguments),
    /// Bind every encrypted value of a database to its tenant and name.
    ///
    /// Run it when all servers on the database have this version: earlier ones can't read the values
    /// afterwards. It needs the encryption key and may be repeated. It may run beside servers on
    /// Postgres; stop a server on SQLite first.
    Reseal(DbArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum GetCommand {
    /// Print a credential.
    Credential(GetCredentialArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SetCredentialArguments {
    /// Its name.
    pub(crate) name: String,
    /// Its type, as postgres, bearer or s3.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: String,
    /// What is secret, as a JSON or YAML object: a file, or `-` for stdin.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Set one value of it. Others on this machine can see it while the command runs; a file or
    /// stdin keeps it from them.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CredentialsArguments {
    /// Only this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Only those with this in their name or description.
    #[arg(long, value_name = "TEXT")]
    pub(crate) find: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct GetCredentialArguments {
    /// Print what is secret, too.
    #[arg(long)]
    pub(crate) include_data: bool,
    #[command(flatten)]
    pub(crate) of: CredentialArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CredentialArguments {
    /// Its name, or its id.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SubscriptionCommand {
    /// Register a subscription whose document is in the catalog.
    Register(SubscribeArguments),
    /// List subscriptions; those that are over, too.
    List(SubscriptionsArguments),
    /// Say how a subscription stands.
    Get(SubscriptionArguments),
    /// Read its log: its moves, and what became of messages.
    Events(SubscriptionEventsArguments),
    /// Let it take messages.
    Activate(SubscriptionArguments),
    /// Let it take no messages for now.
    Pause(SubscriptionArguments),
    /// Let it go on after a pause.
    Resume(SubscriptionArguments),
    /// Let it finish what it has, and take nothing more.
    Drain(SubscriptionArguments),
    /// End it.
    Deactivate(SubscriptionArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SubscribeArguments {
    /// The document's path in the catalog.
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
    /// The subscription.
    #[arg(value_name = "ID")]
    pub(crate) id: i64,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SubscriptionEventsArguments {
    /// Events after this number in the log.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u64,
    /// At most so many.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) of: SubscriptionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WorkersArguments {
    /// Only those of this status.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only those with this in their name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token. It is printed this once.
    Create(CreateTokenArguments),
    /// List tokens; those that do not count any more, too.
    List(TokensArguments),
    /// End a token.
    Revoke(RevokeTokenArguments),
    /// Print the header that shows the token for a server, for curl:
    /// `curl --header @<(noetl token header) URL`.
    Header(ShownTokenArguments),
    /// Print a link that signs a browser in, once and within ten minutes.
    Link(ShownTokenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShownTokenArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

/// The database itself, for the first token or when all are lost.
#[derive(Debug, Args)]
pub(crate) struct DirectArguments {
    /// Work on this database without a server: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["server_url", "host", "context", "token"])]
    pub(crate) database_url: Option<String>,
    /// With --database-url: whose tokens [default: default].
    #[arg(long, value_name = "NAME", requires = "database_url")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CreateTokenArguments {
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "cli")]
    pub(crate) name: String,
    /// What its holder may do: admin, operator, author, viewer or worker.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: String,
    /// For how long it counts, as 90s, 30m, 12h, 7d or 4w; for ever when left out.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) expires: Option<u64>,
    /// For role worker: the pool whose steps the holder may run; any pool when left out.
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// Write the token to this file, which only its owner can read, and not to stdout. A file that
    /// exists is left alone, and no token is made.
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
    /// The token's id: what stands between the first two `_` of it.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) direct: DirectArguments,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

/// A time as people write it, in seconds.
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
    fn times_are_read_with_their_unit() {
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
