//! Faults of a simulation and their names.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A database call takes seconds.
    Slow,
    /// A database call fails without effect.
    Refused,
    /// A database call is lost, with an unknown outcome for the caller.
    CallLost,
    /// A database call succeeds, and its response is lost.
    AnswerLost,
    /// The process dies before a database call.
    CrashBefore,
    /// The process dies after a database call.
    CrashAfter,
    /// The process freezes for a while.
    Frozen,
    /// The database is unavailable for a while.
    Outage,
    /// The clock of a process jumps.
    ClockJump,
    /// A process drains while its replacement starts.
    Replaced,
    /// A notification between processes is lost.
    WordLost,
    /// A remote worker dies with its leased commands.
    WorkerDied,
    /// A remote worker gets no response to a request.
    WorkerCut,
    /// A remote worker sends a report twice, the second time late.
    WorkerRepeats,
    /// The bus is unavailable for a while.
    BusAway,
    /// The bus stores messages without acks.
    BusMute,
    /// The bus loses all messages.
    BusWiped,
}

impl Fault {
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

    /// Returns the name of the fault on the command line.
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
        let parsed = Self::ALL.into_iter().find(|fault| fault.as_str() == text);
        parsed.ok_or_else(|| format!("unknown fault '{text}'"))
    }
}
