//! A JSON endpoint as the source of a transfer.

use noetl_model::{Failure, FailureKind, Map, Value};

use super::Side;
use super::flow::RowSender;
use crate::config::{self, type_name};
use crate::{Http, Tool};

/// Sends one request, and forwards the list of maps in the response, or under its `data_path`.
///
/// The response is buffered in memory, within the limit of the http tool.
pub(super) async fn read(http: &Http, side: &Side<'_>, mut flow: RowSender) -> Result<(), Failure> {
    let path = config::text(side.settings, "data_path")?.unwrap_or_default();
    let mut call = side.call.clone();
    call.config = side.settings.clone();
    call.input = Map::new();
    let mut answer = http.run(call).await?;
    let mut data = answer["data"].take();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        data = match part.parse::<usize>() {
            Ok(index) if data.is_array() => data[index].take(),
            _ => data.get_mut(part).map(Value::take).unwrap_or_default(),
        };
    }
    let Value::Array(rows) = data else {
        let place = if path.is_empty() { "the answer" } else { path };
        let what = type_name(&data);
        return Err(Failure::new(
            FailureKind::Schema,
            format!("{place} must be a list of maps, not {what}; `data_path` says where it is"),
        ));
    };
    // A later row may have a column that the first one lacks.
    let mut columns: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (place, row) in rows.iter().enumerate() {
        let Value::Object(row) = row else {
            let actual = type_name(row);
            return Err(Failure::new(
                FailureKind::Schema,
                format!("row {place} must be a map, not {actual}"),
            ));
        };
        for name in row.keys() {
            if seen.insert(name.clone()) {
                columns.push(name.clone());
            }
        }
    }
    flow.begin(columns.clone()).await?;
    for mut row in rows {
        let cells = columns.iter().map(|name| {
            let value = row.get_mut(name).map(Value::take);
            value.unwrap_or_default().into()
        });
        flow.row(cells.collect()).await?;
    }
    flow.end().await?;
    Ok(())
}
