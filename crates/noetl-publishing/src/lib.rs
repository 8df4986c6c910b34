//! Publishing: events on a stream, commands announced to workers on a bus, the outbox of external
//! publishers, and the rows that system consumers read back.

mod announcements;
mod event_stream;
mod import;
mod outbox;
mod publisher;
mod relay;
mod service;
mod stream_metrics;
mod system_consumers;
mod tailer;

pub use announcements::{AnnouncerHandle, AnnouncerOptions};
pub use event_stream::PublisherOptions;
pub use import::{ImportService, ImportSummary, InvalidRow, check_depth, check_type, parse_row};
pub use outbox::OutboxService;
pub use publisher::PublisherHandle;
pub use service::Publishing;
pub use system_consumers::{SystemConsumers, SystemConsumersHandle};
