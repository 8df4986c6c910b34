//! A database file as one side of a transfer, in the step's sandbox: the worker's end of the pipe,
//! and the sandbox's.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Failure, FailureKind};

use super::flow::{self, RowMessage, RowReceiver, RowSender, WritePlan};
use super::{Side, read_file, write_file};
use crate::ToolCall;
use crate::host_protocol::{
    FileTask, ToolFrame, TransferSide, read_frame, worker_gone, write_frame,
};
use crate::postgres::Stopper;
use crate::sandbox::{Sandbox, ToolRun};
use crate::sql::StopFlag;

/// Interval at which the stop flag is polled.
const LOOK: Duration = Duration::from_millis(50);

fn task_side(side: &Side<'_>) -> TransferSide {
    TransferSide {
        kind: side.kind.to_owned(),
        settings: side.settings.clone(),
        guard: side.guard.clone(),
    }
}

/// Forwards the rows that a process in the sandbox reads.
pub(super) async fn read(
    sandbox: &Arc<Sandbox>,
    side: &Side<'_>,
    mut flow: RowSender,
) -> Result<(), Failure> {
    let task = FileTask::TransferRead(task_side(side));
    let mut run = ToolRun::start(sandbox, side.call, &task).await?;
    run.close();
    let reading = async {
        loop {
            match run.next().await? {
                ToolFrame::Columns(columns) => flow.begin(columns).await?,
                ToolFrame::Rows(rows) => {
                    for row in rows {
                        flow.row(row).await?;
                    }
                }
                // Only the outcome tells whether all rows were read.
                ToolFrame::End => {}
                ToolFrame::Done(outcome) => {
                    outcome?;
                    return Ok(flow.end().await?);
                }
            }
        }
    };
    let outcome = tokio::select! {
        outcome = reading => outcome,
        () = raised(side.stop) => Err(stopped()),
    };
    run.end().await;
    outcome
}

/// Sends rows to a process in the sandbox that writes them.
pub(super) async fn write(
    sandbox: &Arc<Sandbox>,
    side: &Side<'_>,
    mut receiver: RowReceiver,
) -> Result<u64, Failure> {
    let task = FileTask::TransferWrite(task_side(side));
    let mut run = ToolRun::start(sandbox, side.call, &task).await?;
    let writing = async {
        loop {
            let piece = receiver.next().await?;
            let is_last = matches!(piece, RowMessage::End);
            let frame = match piece {
                RowMessage::Columns(columns) => ToolFrame::Columns(columns),
                RowMessage::Rows(rows) => ToolFrame::Rows(rows),
                RowMessage::End => ToolFrame::End,
            };
            if !run.send(&frame).await? || is_last {
                break;
            }
        }
        run.close();
        run.outcome().await.map(|rows| rows.as_u64().unwrap_or_default())
    };
    let outcome = tokio::select! {
        outcome = writing => outcome,
        () = raised(side.stop) => Err(stopped()),
    };
    run.end().await;
    outcome
}

async fn raised(stop: &StopFlag) {
    while !stop.is_raised() {
        tokio::time::sleep(LOOK).await;
    }
}

fn stopped() -> Failure {
    Failure::new(FailureKind::Cancelled, "the step was stopped")
}

/// Reads rows and sends them to the worker. Runs in the sandbox.
pub(crate) async fn read_side(task: TransferSide, call: ToolCall) -> Result<(), Failure> {
    let (stopper, stop) = (Stopper::default(), StopFlag::default());
    let side = side(&task, &call, &stopper, &stop);
    let (flow, mut receiver) = flow::channel();
    let sending = tokio::task::spawn_blocking(move || {
        // Without an end, the source failed and reports its own failure.
        while let Ok(piece) = receiver.next_blocking() {
            let frame = match piece {
                RowMessage::Columns(columns) => ToolFrame::Columns(columns),
                RowMessage::Rows(rows) => ToolFrame::Rows(rows),
                RowMessage::End => return write_frame(&ToolFrame::End),
            };
            write_frame(&frame)?;
        }
        Ok(())
    });
    let read = read_file(&side, flow).await;
    let sent = sending.await;
    read?;
    match sent {
        Ok(sent) => sent.map_err(|error| worker_gone(&error)),
        Err(error) => Err(Failure::new(FailureKind::Unknown, error.to_string())),
    }
}

/// Writes the rows that the worker sends. Runs in the sandbox.
pub(crate) async fn write_side(task: TransferSide, call: ToolCall) -> Result<u64, Failure> {
    let (stopper, stop) = (Stopper::default(), StopFlag::default());
    let side = side(&task, &call, &stopper, &stop);
    let plan = WritePlan::read(side.settings)?;
    let (mut flow, receiver) = flow::channel();
    // Ends when the worker sends no more. Without an end message, nothing is committed.
    tokio::task::spawn_blocking(move || {
        loop {
            let passed = match read_frame::<ToolFrame>() {
                Ok(ToolFrame::Columns(columns)) => flow.begin_blocking(columns),
                Ok(ToolFrame::Rows(rows)) => {
                    rows.into_iter().try_for_each(|row| flow.row_blocking(row))
                }
                Ok(ToolFrame::End) => {
                    // If the target ended, its own failure contains the reason.
                    let _ = flow.end_blocking();
                    return;
                }
                Ok(ToolFrame::Done(_)) | Err(_) => return,
            };
            if passed.is_err() {
                return;
            }
        }
    });
    write_file(&side, &plan, receiver).await
}

fn side<'a>(
    task: &'a TransferSide,
    call: &'a ToolCall,
    stopper: &'a Stopper,
    stop: &'a StopFlag,
) -> Side<'a> {
    let (kind, settings) = (task.kind.as_str(), &task.settings);
    Side { kind, settings, call, stopper, stop, guard: task.guard.clone() }
}
