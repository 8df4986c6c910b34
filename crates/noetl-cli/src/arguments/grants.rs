//! Arguments of `noetl grant`.

use clap::{Args, Subcommand};

use super::RemoteArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum GrantCommand {
    /// Create a grant. The first grant of a role or credential restricts it to its grants.
    Create(CreateGrantArguments),
    /// List the tenant's grants, oldest first.
    List(GrantsArguments),
    /// Remove a grant. Removing the last grant of a role or credential lifts the restriction.
    Remove(RemoveGrantArguments),
}

#[derive(Debug, Args)]
#[group(id = "granted", required = true, multiple = false, args = ["role", "credential"])]
pub(crate) struct CreateGrantArguments {
    /// Role to grant on the prefix: author or operator.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// Caller to grant the role to: token:ID or oidc:SUBJECT [default: every caller with the role].
    #[arg(long = "to", value_name = "CALLER", requires = "role")]
    pub(crate) subject: Option<String>,
    /// Credential that playbooks below the prefix may use.
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<String>,
    /// Prefix of catalog paths, such as team-a/; `/` for all paths.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct GrantsArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveGrantArguments {
    /// ID of the grant.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
