//! Shows live progress of one execution, with one line per step.
//!
//! On a terminal, each running step has an animated line. Otherwise, each step prints one plain
//! line when it ends.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use noetl_model::event::{LoopEvent, ParkReason};
use noetl_model::placeholder::without_tags;
use noetl_model::{Event, Fact, StepOutcome, Timestamp};

use super::style::{self, TextStyle, one_line};

/// Maximum number of running steps shown at a time; more would scroll other lines off the screen.
const SHOWN_MAX: usize = 10;

/// Prints events of an execution to stderr as they occur.
pub(crate) struct Progress {
    style: TextStyle,
    live: Option<MultiProgress>,
    running: HashMap<(Arc<str>, u32), RunningStep>,
}

struct RunningStep {
    since: Timestamp,
    line: Option<ProgressBar>,
    /// For a loop, the number of ended items, and the total number if known.
    items: Option<(u32, Option<u32>)>,
}

impl Progress {
    /// Creates a progress display on stderr.
    pub(crate) fn new() -> Self {
        let live = std::io::stderr()
            .is_terminal()
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(15)));
        Self { style: style::of_stderr(), live, running: HashMap::new() }
    }

    /// Updates the display for one event.
    pub(crate) fn show(&mut self, event: &Event) {
        match &event.fact {
            Fact::StepEntered { step, run, .. } => {
                let line = self.line(step, *run);
                let step_run = (step.clone(), *run);
                self.running.insert(step_run, RunningStep { since: event.at, line, items: None });
            }
            Fact::StepExited { step, run, outcome, .. } => {
                self.ended(event, step, *run, outcome);
            }
            Fact::CommandExpired { step, reason, .. } => {
                let again = self.style.warn("again");
                self.print(&format!("  {again}   {}  {}", one_line(step), one_line(reason)));
            }
            Fact::Loop(fact) => {
                if let LoopEvent::Started(started) = &fact.what {
                    self.count(&fact.step, fact.run, |_| (0, started.total));
                }
            }
            Fact::CommandCompleted { step, item: Some(item), .. }
            | Fact::CommandFailed { step, item: Some(item), .. } => {
                self.count(step, item.run, |(ended, total)| (ended + 1, total));
            }
            Fact::CommandParked { step, on: ParkReason::Callback(callback), .. } => {
                let waits = self.style.warn("waits ");
                let until = callback.until;
                self.print(&format!("  {waits}  {}  for an answer until {until}", one_line(step)));
            }
            Fact::StepDenied { step, .. } => {
                let denied = self.style.faint("denied");
                self.print(&format!("  {denied}  {}", one_line(step)));
            }
            Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => self.clear(),
            Fact::PlaybookStarted(_)
            | Fact::TokensDropped { .. }
            | Fact::StepHeld { .. }
            | Fact::CommandParked { .. }
            | Fact::CommandIssued(_)
            | Fact::CommandClaimed { .. }
            | Fact::CommandStarted { .. }
            | Fact::CallDone { .. }
            | Fact::CallFailed { .. }
            | Fact::CommandCompleted { .. }
            | Fact::CommandFailed { .. }
            | Fact::CommandCancelled { .. }
            | Fact::ContextUpdated { .. }
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_) => {}
        }
    }

    pub(crate) fn clear(&mut self) {
        for (_, running) in self.running.drain() {
            if let Some(line) = running.line {
                line.finish_and_clear();
            }
        }
    }

    /// Updates the item counts of a loop.
    fn count(
        &mut self,
        step: &Arc<str>,
        run: u32,
        change: impl FnOnce((u32, Option<u32>)) -> (u32, Option<u32>),
    ) {
        let Some(running) = self.running.get_mut(&(step.clone(), run)) else { return };
        let (ended, total) = change(running.items.unwrap_or_default());
        running.items = Some((ended, total));
        if let Some(line) = &running.line {
            line.set_message(format!("{}  {}", run_label(step, run), counted(ended, total)));
        }
    }

    fn line(&self, step: &str, run: u32) -> Option<ProgressBar> {
        let live = self.live.as_ref()?;
        if self.running.len() >= SHOWN_MAX {
            return None;
        }
        let line = live.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}  {elapsed}") {
            line.set_style(style);
        }
        line.set_message(run_label(step, run));
        line.enable_steady_tick(Duration::from_millis(120));
        Some(line)
    }

    fn ended(&mut self, event: &Event, step: &Arc<str>, run: u32, outcome: &StepOutcome) {
        let running = self.running.remove(&(step.clone(), run));
        let items = running.as_ref().and_then(|running| running.items);
        let items = items.map(|(ended, total)| format!("  {}", counted(ended, total)));
        let took = running.as_ref().map_or(Duration::ZERO, |running| event.at.since(running.since));
        if let Some(line) = running.and_then(|running| running.line) {
            line.finish_and_clear();
        }
        let (state, why) = match outcome {
            StepOutcome::Done => (self.style.good("done  "), String::new()),
            StepOutcome::Skipped => (self.style.faint("passed"), String::new()),
            StepOutcome::Failed { failure, handled: true, .. } => (
                self.style.warn("failed"),
                format!("  {} (handled)", one_line(&failure.to_string())),
            ),
            StepOutcome::Failed { failure, handled: false, .. } => {
                (self.style.bad("failed"), format!("  {}", one_line(&failure.to_string())))
            }
        };
        let took = self.style.faint(&human(took));
        let items = items.unwrap_or_default();
        self.print(&format!("  {state}  {}{items}  {took}{why}", run_label(step, run)));
    }

    fn print(&self, text: &str) {
        match &self.live {
            // Prints above the animated lines. Ignores the error of a closed terminal.
            Some(live) => drop(live.println(without_tags(text))),
            None => super::note(text),
        }
    }
}

/// Formats the progress of a loop: ended items out of the total, or rows if the total is unknown.
fn counted(ended: u32, total: Option<u32>) -> String {
    match total {
        Some(total) => format!("{ended} of {total} items"),
        None => format!("{ended} rows"),
    }
}

/// Returns a step's name, with its run number from the second run on.
fn run_label(step: &str, run: u32) -> String {
    let step = one_line(step);
    if run > 1 { format!("{step} #{run}") } else { step }
}

/// Formats a duration with a suitable unit.
pub(crate) fn human(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.001 {
        format!("{} µs", time.as_micros())
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

/// Progress of a long operation on one line, on a terminal only.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    /// Creates a line that counts items of this kind.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            let template = format!("  {{pos}} {what}");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(style);
            }
            bar
        });
        Self(bar)
    }

    /// Sets the number of completed items.
    pub(crate) fn count(&self, done: usize) {
        if let Some(bar) = &self.0 {
            bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
        }
    }

    /// Sets the number of completed items and the total.
    pub(crate) fn set(&self, done: u64, all: u64) {
        if let Some(bar) = &self.0 {
            bar.set_length(all);
            bar.set_position(done);
        }
    }

    /// Removes the line from the terminal.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_readable_units() {
        let spoken: Vec<String> =
            [12, 4_000, 1_500_000, 61_000_000].map(|us| human(Duration::from_micros(us))).into();
        assert_eq!(spoken, ["12 µs", "4 ms", "1.5 s", "1 min 01 s"]);
    }
}
