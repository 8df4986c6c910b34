//! `noetl dev`: the control plane with a worker, on an embedded database.

use std::net::SocketAddr;
use std::process::ExitCode;

use super::serve::Serve;
use crate::arguments::DevArguments;
use crate::database::Database;
use crate::failure::Failure;
use crate::stores::Place;

pub(crate) fn main(arguments: DevArguments) -> Result<ExitCode, Failure> {
    let url = arguments.database_url.as_deref();
    let place = Place::chosen(url, Database::in_directory(&arguments.data))?;
    let serve = Serve {
        host: arguments.host,
        port: arguments.port,
        place,
        key_directory: Some(arguments.data),
        slots: arguments.slots,
        policy: arguments.policy,
        hint: |address| Some(what_to_try(address)),
    };
    serve.main()
}

/// Commands for a second terminal. A document may be sent in base64, which needs no quoting.
fn what_to_try(address: SocketAddr) -> String {
    let api = format!("http://{address}/api");
    let json = "-H 'content-type: application/json'";
    format!(
        r#"try in a second terminal:
  curl {api}/health
  printf '{{"content": "%s"}}' "$(base64 < examples/hello.yaml | tr -d '\n')" |
    curl {api}/catalog/register {json} -d @-
  curl {api}/execute {json} \
    -d '{{"path": "examples/hello", "payload": {{"who": "Ada"}}}}'
  curl {api}/executions/<execution_id>"#
    )
}
