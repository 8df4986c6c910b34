//! `noetl dev`: starts the control plane with a worker on an embedded database.

use std::net::SocketAddr;
use std::process::ExitCode;

use noetl_config::tree::{Database, Server};

use super::serve::Serve;
use crate::arguments::DevArguments;
use crate::error::CliError;
use crate::http_options::AuthMode;
use crate::output::style;
use crate::settings;
use crate::stores::StoreLocation;

/// Address of the server that client commands use by default.
const USUAL: &str = "127.0.0.1:8082";

pub(crate) fn main(arguments: &DevArguments) -> Result<ExitCode, CliError> {
    let settings = arguments.retention.over(&arguments.flags.settings());
    let database: Database = settings::decode(&settings)?;
    let server: Server = settings::decode(&settings)?;
    let serve = Serve {
        auth: AuthMode::configured(&settings, AuthMode::Token)?,
        location: StoreLocation::configured(&settings)?,
        key_directory: Some(database.data),
        slots: server.slots,
        settings,
        subscriptions: true,
        signs_in: true,
        hint: |address| Some(what_to_try(address)),
    };
    serve.main()
}

/// Returns example commands for a second terminal, with the program name used for this process.
fn what_to_try(address: SocketAddr) -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = match program.to_string_lossy() {
        name if name.is_empty() => "noetl".into(),
        name => style::one_line(&name),
    };
    // Client commands use the default address without a setting.
    let server = match address.to_string() {
        usual if usual == USUAL => String::new(),
        other => format!("  export NOETL_SERVER_URL=http://{other}\n"),
    };
    format!(
        "try in a second terminal:\n{server}  {program} register playbook -f examples/hello.yaml\n  \
         {program} execute examples/hello --set who=Ada --follow\n  {program} executions"
    )
}
