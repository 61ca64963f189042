//! The words in which a server tells about its own work (`docs/trace-format.md`, "What a server may
//! tell"): one JSON object a line.

/// One thing that a server tells about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The handler began.
    HandlerStart,
    /// The handler came to a point at which it looks for a cancel.
    Checkpoint,
    /// The server read the cancel.
    CancelSeen,
    /// The handler was stopped and releases what it holds.
    CleanupStart,
    /// Everything that it held was released.
    CleanupEnd,
    /// Something was done that cannot be undone.
    Effect,
    /// The handler came to its end by itself.
    Done,
    /// How much waits to be written.
    QueueDepth,
}

impl Stage {
    /// Every stage, in the order of a life.
    pub const ALL: [Stage; 8] = [
        Stage::HandlerStart,
        Stage::Checkpoint,
        Stage::CancelSeen,
        Stage::CleanupStart,
        Stage::CleanupEnd,
        Stage::Effect,
        Stage::Done,
        Stage::QueueDepth,
    ];

    /// Its name, as the member `stage` holds it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::HandlerStart => "handler_start",
            Stage::Checkpoint => "checkpoint",
            Stage::CancelSeen => "cancel_seen",
            Stage::CleanupStart => "cleanup_start",
            Stage::CleanupEnd => "cleanup_end",
            Stage::Effect => "effect",
            Stage::Done => "done",
            Stage::QueueDepth => "queue_depth",
        }
    }

    /// The stage of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

/// Name of the environment variable in which a tap hands its socket to the server that it starts.
pub const SOCKET_VARIABLE: &str = "MIDWIRE_TELEMETRY";

/// Longest line that a tap reads whole. ours: a stage with a key and a receipt takes 200 bytes.
pub const LINE_LIMIT_BYTES: usize = 4096;

/// The line with which a teller, or the tap, owns up to lines that were given up.
#[must_use]
pub fn dropped(by: &str, lines: u64) -> String {
    format!("{{\"stage\":\"dropped\",\"by\":\"{by}\",\"lines\":{lines}}}")
}
