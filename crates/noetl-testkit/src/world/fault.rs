//! What goes wrong in a world, by name.

use std::fmt;
use std::str::FromStr;

/// A fault that a world meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A call of the database takes seconds.
    Slow,
    /// A call is refused and does nothing.
    Refused,
    /// A call never gets there, and whoever asked does not know.
    CallLost,
    /// A call is done, and its answer is lost.
    AnswerLost,
    /// The process dies before a call is done.
    CrashBefore,
    /// The process dies after a call is done.
    CrashAfter,
    /// The process stands still for a while.
    Frozen,
    /// The database answers nobody for a while.
    Outage,
    /// The clock of a process jumps.
    ClockJump,
    /// A process is replaced by another in good order.
    Replaced,
    /// A word between processes is lost.
    WordLost,
    /// A worker dies with what it holds.
    WorkerDied,
    /// A worker does not get the answer to a call.
    WorkerCut,
    /// A worker says something twice, the second time late.
    WorkerRepeats,
    /// The bus is away for a while.
    BusAway,
    /// The bus keeps messages and does not say so.
    BusMute,
    /// Everything on the bus is gone.
    BusWiped,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Slow,
        Self::Refused,
        Self::CallLost,
        Self::AnswerLost,
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Frozen,
        Self::Outage,
        Self::ClockJump,
        Self::Replaced,
        Self::WordLost,
        Self::WorkerDied,
        Self::WorkerCut,
        Self::WorkerRepeats,
        Self::BusAway,
        Self::BusMute,
        Self::BusWiped,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Refused => "refused",
            Self::CallLost => "call-lost",
            Self::AnswerLost => "answer-lost",
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::Frozen => "frozen",
            Self::Outage => "outage",
            Self::ClockJump => "clock-jump",
            Self::Replaced => "replaced",
            Self::WordLost => "word-lost",
            Self::WorkerDied => "worker-died",
            Self::WorkerCut => "worker-cut",
            Self::WorkerRepeats => "worker-repeats",
            Self::BusAway => "bus-away",
            Self::BusMute => "bus-mute",
            Self::BusWiped => "bus-wiped",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|fault| fault.as_str() == text);
        found.ok_or_else(|| format!("there is no fault '{text}'"))
    }
}
