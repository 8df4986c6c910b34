//! Results of the earlier segments of a split pipeline, as a command carries them.

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::scope::{
    CommandScope, EarlierSegment, ScopePart, SegmentAnswer, SplitScope, TaskResult,
};
use serde_json::Value;

/// Returns the key of an earlier segment's result in a command's scope.
pub fn earlier_key(segment: usize) -> String {
    segment.to_string()
}

/// Returns the blob that holds an earlier segment's result, if it is too large for the log.
pub fn earlier_blob(scope: &CommandScope, segment: usize) -> Option<&Arc<BlobRef>> {
    let key = earlier_key(segment);
    let mut blobs = scope.blobs.iter();
    let earlier = blobs.find(|blob| blob.among == ScopePart::Earlier && *blob.name == *key);
    earlier.map(|blob| &blob.reference)
}

/// Returns the results of all earlier tasks, in the order they ran. `answers` contains one result
/// per earlier segment.
///
/// # Errors
///
/// Returns a message if a result does not have the form that workers of this version report for a
/// segment.
pub fn earlier_tasks(split: &SplitScope, answers: Vec<Value>) -> Result<Vec<TaskResult>, String> {
    let mut tasks = Vec::new();
    for (segment, (kind, data)) in split.tasks.iter().zip(answers).enumerate() {
        match kind {
            EarlierSegment::Call { name, failed } => {
                tasks.push(TaskResult { name: name.clone(), data, failed: *failed });
            }
            EarlierSegment::Tasks => {
                let answer: SegmentAnswer = serde_json::from_value(data).map_err(|error| {
                    format!(
                        "the answer of segment {segment} of the pipeline can't be read: {error}"
                    )
                })?;
                tasks.extend(answer.tasks);
            }
        }
    }
    Ok(tasks)
}
