//! The read model of one event log.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::business::{BusinessObject, ObjectIdentity};
use super::checksum::{Checksum, ProjectionChecksums};
use super::command::ReplayedCommand;
use super::event::ReplayEvent;
use super::execution::ReplayedExecution;
use super::frame::ReplayFrame;
use super::loops::ReplayLoop;
use super::seed::ReplaySnapshot;
use super::stage::Stage;

/// Status of an object whose events have not set one.
pub(super) const UNKNOWN: &str = "UNKNOWN";

/// Part of the state a caller requests. Recorded in the state without further effect: the fold
/// always computes all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    Execution,
    Stage,
    Frame,
    Command,
    BusinessObject,
    Loop,
    #[default]
    All,
}

/// A text that names no projection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown projection \"{0}\"; expected one of: execution, stage, frame, command, \
     business_object, loop, all"
)]
pub struct UnknownProjection(String);

impl Projection {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Stage => "stage",
            Self::Frame => "frame",
            Self::Command => "command",
            Self::BusinessObject => "business_object",
            Self::Loop => "loop",
            Self::All => "all",
        }
    }
}

impl FromStr for Projection {
    type Err = UnknownProjection;

    fn from_str(text: &str) -> Result<Self, UnknownProjection> {
        let all = [
            Self::Execution,
            Self::Stage,
            Self::Frame,
            Self::Command,
            Self::BusinessObject,
            Self::Loop,
            Self::All,
        ];
        let named = all.into_iter().find(|projection| projection.as_str() == text);
        named.ok_or_else(|| UnknownProjection(text.chars().take(80).collect()))
    }
}

/// Identity of the folded event log, and the requested projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayScope {
    pub tenant_id: String,
    pub organization_id: String,
    pub execution_id: i64,
    /// Part of the state the caller requests.
    pub projection: Projection,
}

/// State folded from the events of one log, up to some event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayState {
    pub tenant_id: String,
    pub organization_id: String,
    pub execution_id: i64,
    /// Part of the state the caller requests.
    pub projection: Projection,
    pub event_count: u64,
    /// ID of the newest folded event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_type: Option<String>,
    /// The execution as a whole.
    pub execution: ReplayedExecution,
    /// Stages, by stage ID.
    pub stages: BTreeMap<String, Stage>,
    /// Frames, by frame ID.
    pub frames: BTreeMap<String, ReplayFrame>,
    /// Commands, by command ID.
    pub commands: BTreeMap<String, ReplayedCommand>,
    /// Business objects, by type and ID.
    pub business_objects: BTreeMap<String, BusinessObject>,
    /// Loops, by loop ID.
    pub loops: BTreeMap<String, ReplayLoop>,
    /// Digest of the upcasters, which convert old event formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upcaster_registry_digest: Option<String>,
    /// Snapshot the fold started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_snapshot: Option<ReplaySnapshot>,
    /// Checksum of all fields above and of `projection_checksums`; `None` until sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Checksum>,
    /// Checksums of the parts; `None` until sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection_checksums: Option<ProjectionChecksums>,
}

impl ReplayState {
    /// Creates the state before the first event.
    pub fn new(scope: ReplayScope) -> Self {
        Self {
            tenant_id: scope.tenant_id,
            organization_id: scope.organization_id,
            execution_id: scope.execution_id,
            projection: scope.projection,
            event_count: 0,
            last_event_id: None,
            last_event_type: None,
            execution: ReplayedExecution::default(),
            stages: BTreeMap::new(),
            frames: BTreeMap::new(),
            commands: BTreeMap::new(),
            business_objects: BTreeMap::new(),
            loops: BTreeMap::new(),
            upcaster_registry_digest: None,
            replay_snapshot: None,
            checksum: None,
            projection_checksums: None,
        }
    }

    /// Folds one event. Events must arrive in order of their IDs. Clears the checksums.
    pub fn apply(&mut self, event: &ReplayEvent) {
        (self.checksum, self.projection_checksums) = (None, None);
        self.event_count += 1;
        self.last_event_id = Some(event.event_id);
        self.last_event_type.clone_from(&event.event_type);
        self.execution.apply(event);
        if let Some(id) = event.stage() {
            let stage = self.stages.entry(id);
            stage.or_insert_with_key(|id| Stage::new(id.clone(), event)).apply(event);
        }
        if let Some(id) = event.frame() {
            let frame = self.frames.entry(id);
            frame.or_insert_with_key(|id| ReplayFrame::new(id.clone())).apply(event);
        }
        if let Some(id) = event.command() {
            let command = self.commands.entry(id);
            command.or_insert_with_key(|id| ReplayedCommand::new(id.clone())).apply(event);
        }
        if let Some(identity) = ObjectIdentity::from_event(event) {
            let object = self.business_objects.entry(identity.key());
            object.or_insert_with(|| BusinessObject::new(identity)).apply(event);
        }
        if let Some(id) = event.loop_id() {
            let entry = self.loops.entry(id);
            entry.or_insert_with_key(|id| ReplayLoop::new(id.clone(), event)).apply(event);
        }
    }
}
