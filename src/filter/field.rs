//! The fields that a filter can name, what they hold, and the words of `is:`.

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Causal number of the event, or of the event of a call's request.
    Number,
    /// Method.
    Method,
    /// Id of the request.
    Id,
    /// Tool or prompt name, resource URI, task id.
    Target,
    /// Name of the tool of a `tools/call`.
    Tool,
    /// Where the call stands.
    State,
    /// Which way it went.
    Dir,
    /// What the event is.
    Kind,
    /// Protocol revision.
    Era,
    /// How the peers are joined.
    Transport,
    /// HTTP: number of the exchange.
    Stream,
    /// HTTP: number of the connection.
    Conn,
    /// HTTP status.
    Status,
    /// JSON-RPC error code.
    Code,
    /// From request to end, or to now.
    Duration,
    /// Length on the wire.
    Size,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    Number,
    /// Nanoseconds.
    Duration,
    /// Bytes.
    Size,
}

/// States of a call.
pub const STATES: &[&str] =
    &["delivered", "progressing", "ok", "error", "input", "cancelled", "disconnected", "lost", "unresolved"];

/// Kinds of event.
pub const KINDS: &[&str] = &[
    "request",
    "notification",
    "progress",
    "cancel",
    "result",
    "error",
    "invalid",
    "comment",
    "sse",
    "http",
    "head",
    "body",
    "stderr",
    "client_closed",
    "server_closed",
    "process",
    "queue",
    "inject",
    "telemetry",
    "gap",
    "mark",
    "note",
];

const ERAS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

impl Field {
    /// Every field, with its name and what it holds.
    pub(crate) const ALL: &[(Field, &'static str, Holds)] = &[
        (Field::Number, "n", Holds::Number),
        (Field::Method, "method", Holds::Text),
        (Field::Id, "id", Holds::Text),
        (Field::Target, "target", Holds::Text),
        (Field::Tool, "tool", Holds::Text),
        (Field::State, "state", Holds::Word(STATES)),
        (Field::Dir, "dir", Holds::Word(&["c2s", "s2c", "stderr", "tap"])),
        (Field::Kind, "kind", Holds::Word(KINDS)),
        (Field::Era, "era", Holds::Word(ERAS)),
        (Field::Transport, "transport", Holds::Word(&["stdio", "http"])),
        (Field::Stream, "stream", Holds::Number),
        (Field::Conn, "conn", Holds::Number),
        (Field::Status, "status", Holds::Number),
        (Field::Code, "code", Holds::Number),
        (Field::Duration, "dur", Holds::Duration),
        (Field::Size, "size", Holds::Size),
    ];

    /// The field of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Field> {
        let found = Field::ALL.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(field, _, _)| *field)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Field::ALL.iter().find(|(field, _, _)| *field == self).map_or("", |(_, name, _)| name)
    }

    /// The names of all fields.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Field::ALL.iter().map(|(_, name, _)| *name)
    }

    pub(crate) fn holds(self) -> Holds {
        Field::ALL.iter().find(|(field, _, _)| *field == self).map_or(Holds::Text, |(_, _, holds)| *holds)
    }
}

/// A word of `is:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Is {
    /// Without an end.
    Open,
    /// Answered later than a crossing explains, or something came after the end.
    Late,
    /// Ended by an error, a refusing status or a tool error.
    Error,
    /// The client cancelled or left.
    Cancelled,
    /// Its stream or process ended before an answer.
    Lost,
    /// It repeats an earlier call.
    Retry,
    /// midwire did something to it.
    Injected,
    /// A frame that is no message.
    Invalid,
}

impl Is {
    /// Every word.
    pub const ALL: [(Is, &'static str); 8] = [
        (Is::Open, "open"),
        (Is::Late, "late"),
        (Is::Error, "error"),
        (Is::Cancelled, "cancelled"),
        (Is::Lost, "lost"),
        (Is::Retry, "retry"),
        (Is::Injected, "injected"),
        (Is::Invalid, "invalid"),
    ];

    /// The word of a text.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Is> {
        Is::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(word, _)| *word)
    }

    /// Its text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Is::ALL.iter().find(|(word, _)| *word == self).map_or("", |(_, name)| name)
    }
}
