//! The table itself.

use super::{Kind, Member, Verb, Waits};

const ANY: Kind = Kind::Whole(0, u64::MAX as i128);

const fn member(name: &'static str, kind: Kind, default: &'static str, means: &'static str) -> Member {
    Member { name, kind, default, means }
}

/// The filter of what is not a rule.
const WHICH_CALLS: Member = member("on", Kind::Filter, "needed", "which calls");

/// What every rule takes beside its own.
pub const RULE: &[Member] = &[
    member("on", Kind::Filter, "every message", "which messages it is meant for"),
    member("name", Kind::Line, "none", "what it is called in the recording and in expectations"),
    member("skip", ANY, "0", "messages that are passed over before the first"),
    member("times", Kind::Times, "1", "how often it is done"),
    member("chance", Kind::Share, "1", "how likely it is done to each of them"),
    member("seed", ANY, "from the tap's", "what its random numbers come from"),
];

const WHEN: Member = member(
    "when",
    Kind::Choice(&["now", "next"]),
    "now",
    "now, or as a rule for the next messages that `on` picks; anything that only rules take says next",
);

const HELD: Member = member("held", ANY, "none", "the held message of this number, instead of a rule");

const CLOSINGS: Kind = Kind::Choice(&["nothing", "error", "reset"]);

/// Every verb, rules first.
pub const VERBS: &[Verb] = &[
    Verb {
        name: "hold",
        does: "a message waits until it is released; others pass it by",
        own: &[member("limit", Kind::Span, "30s", "it is released by itself after this")],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "drop",
        does: "a message never passes",
        own: &[member("held", Kind::Which, "none", "held messages, instead of a rule")],
        bare: &["held"],
        waits: Waits::UnlessHeld,
    },
    Verb {
        name: "duplicate",
        does: "a message passes several times",
        own: &[member("copies", Kind::Whole(2, 100), "2", "how often in all")],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "swap",
        does: "a message passes after the next one of its direction (HTTP: of its stream)",
        own: &[],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "edit",
        does: "a message passes with other values, a held one with another text",
        own: &[
            member("set", Kind::Sets, "needed without held", "what is set where (RFC 6901)"),
            HELD,
            member("text", Kind::Line, "needed with held", "the text in the place of the held message's"),
        ],
        bare: &["held"],
        waits: Waits::UnlessHeld,
    },
    Verb {
        name: "delay",
        does: "a message passes later; those that are not picked pass it by",
        own: &[
            member("ms", Kind::Span, "needed", "how much later"),
            member("jitter", Kind::Span, "0", "at most this much more or less"),
        ],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "throttle",
        does: "a message and all behind it pass slowly, until the rule is disarmed",
        own: &[
            member("bytes", ANY, "one of the two", "bytes a second; 0: nothing passes"),
            member("messages", ANY, "one of the two", "messages a second; 0: nothing passes"),
        ],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "slice",
        does: "the bytes of a message pass in pieces",
        own: &[
            member("bytes", Kind::Whole(1, 1 << 30), "needed", "length of a piece"),
            member("gap", Kind::Span, "0", "time between two pieces"),
        ],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "buffer",
        does: "as a proxy that gathers: a message and what follows pass together, until the rule is disarmed",
        own: &[
            member("bytes", Kind::Whole(1, 1 << 30), "65536", "once so many bytes are there"),
            member("ms", Kind::Span, "1000", "or so long after the first of them"),
        ],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "header",
        does: "HTTP: a field of a head is set or left out",
        own: &[
            member("field", Kind::Line, "needed", "name of the field"),
            member("value", Kind::Line, "none: the field is left out", "its value"),
        ],
        bare: &["field"],
        waits: Waits::Always,
    },
    Verb {
        name: "compress",
        does: "HTTP: a body passes compressed",
        own: &[],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "answer",
        does: "a request is answered in the server's place and never reaches it; an answer is replaced",
        own: &[
            HELD,
            member(
                "error",
                Kind::Whole(i64::MIN as i128, i64::MAX as i128),
                "one of these",
                "code of a JSON-RPC error",
            ),
            member("message", Kind::Text, "answered by midwire", "message of that error"),
            member("result", Kind::Json, "one of these", "a result"),
            member("status", Kind::Whole(200, 599), "one of these", "HTTP: a status without a message"),
            member("malformed", Kind::Flag, "one of these", "text that is no JSON"),
            member(
                "oversized",
                Kind::Whole(1, 1 << 30),
                "one of these",
                "a result with so many bytes of text",
            ),
        ],
        bare: &["held"],
        waits: Waits::UnlessHeld,
    },
    Verb {
        name: "spoil",
        does: "the answer of a call is made wrong",
        own: &[member("how", Kind::Choice(SPOILS), "needed", "in what way")],
        bare: &["how"],
        waits: Waits::Always,
    },
    Verb {
        name: "cancel",
        does: "calls are given up as their client would do it; as a rule, right after the message has passed",
        own: &[
            WHEN,
            member(
                "client",
                CLOSINGS,
                "nothing",
                "what the client gets; HTTP: nothing closes its exchange, reset resets it",
            ),
            member("reason", Kind::Text, "none", "the reason in the notification"),
        ],
        bare: &[],
        waits: Waits::IfNext,
    },
    Verb {
        name: "disconnect",
        does: "exchanges are cut; on stdio, the pipes",
        own: &[
            WHEN,
            member("side", Kind::Choice(&["both", "client", "server"]), "both", "which side"),
            member("reset", Kind::Flag, "false", "by a reset instead of in order"),
            member(
                "at",
                Kind::Choice(&["message", "before-final", "mid-event"]),
                "message",
                "rules: in the message's place, when the final answer comes, or within the next event or line of the answer",
            ),
            member(
                "after_messages",
                Kind::Whole(1, u64::MAX as i128),
                "none",
                "rules: once so many further messages of the answer have passed",
            ),
            member(
                "after_bytes",
                Kind::Whole(1, u64::MAX as i128),
                "none",
                "rules: once so many bytes of the answer have passed",
            ),
        ],
        bare: &[],
        waits: Waits::IfNext,
    },
    process("kill", "the server's process is killed (SIGKILL)"),
    process("stop", "the server's process stands still (SIGSTOP)"),
    process("continue", "the server's process goes on (SIGCONT)"),
    process("close-stdin", "the standard input of the server's process is closed"),
    process("restart", "the server's process is killed and started again; the client's pipes stay"),
    Verb {
        name: "flood",
        does: "progress that nobody asked for follows a message",
        own: &[
            member("per_s", Kind::Whole(1, 100_000), "100", "notifications a second"),
            member("count", Kind::Whole(1, 10_000_000), "100", "how many in all"),
        ],
        bare: &[],
        waits: Waits::Always,
    },
    Verb {
        name: "race",
        does: "the cancel and the answer of a call meet in this order",
        own: &[
            member("first", Kind::Choice(&["cancel", "answer"]), "needed", "which of the two comes first"),
            member("margin", Kind::Span, "0", "by how much"),
        ],
        bare: &["first"],
        waits: Waits::Always,
    },
    Verb {
        name: "retry",
        does: "the newest call like this is sent again with a fresh id; the answer goes to midwire alone",
        own: &[
            WHICH_CALLS,
            member(
                "key",
                Kind::Choice(&["same", "new", "none"]),
                "same",
                "what becomes of its idempotency key",
            ),
            member("arguments", Kind::Json, "the same", "other arguments"),
            member("same_id", Kind::Flag, "false", "with the id of the first, which is a fault"),
            member("sure", Kind::Flag, "false", "although it may take effect twice"),
        ],
        bare: &[],
        waits: Waits::Never,
    },
    Verb {
        name: "send",
        does: "a message of your own is sent",
        own: &[
            member("to", Kind::Choice(&["server", "client"]), "needed", "to whom, as if by the other"),
            member("text", Kind::Line, "needed", "the message as it is to be on the wire"),
            member("stream", ANY, "the newest open one", "HTTP, to the client: on which stream"),
        ],
        bare: &["to"],
        waits: Waits::Never,
    },
    Verb {
        name: "release",
        does: "held messages pass as they are",
        own: &[
            member("which", Kind::Which, "all", "which of them"),
            member("reverse", Kind::Flag, "false", "the newest first"),
            member("after", Kind::Filter, "now", "when a message that this picks has passed"),
        ],
        bare: &["which"],
        waits: Waits::Never,
    },
    Verb {
        name: "extend",
        does: "a held message waits longer before it is released by itself",
        own: &[
            member("held", ANY, "needed", "which"),
            member("more", Kind::Span, "needed", "how much longer"),
        ],
        bare: &["held"],
        waits: Waits::Never,
    },
    Verb {
        name: "disarm",
        does: "a rule waits no longer; what it holds is released",
        own: &[member("which", Kind::Which, "needed", "which of them")],
        bare: &["which"],
        waits: Waits::Never,
    },
    Verb {
        name: "flow",
        does: "how the queue to the client is kept",
        own: &[member(
            "bounded",
            Kind::Whole(2, 1 << 30),
            "nothing is dropped",
            "at most so many messages wait; progress is given up first",
        )],
        bare: &[],
        waits: Waits::Never,
    },
    Verb {
        name: "status",
        does: "what is armed, what is held, which calls are open",
        own: &[],
        bare: &[],
        waits: Waits::Never,
    },
];

const FAULT: Member = member("fault", Kind::Line, "needed", "name of the fault that it follows from");

const WITHIN: Member = member("within", Kind::Span, "any time", "so soon after the fault");

/// The words of a race's end. // the names of the verdicts that a recording is given
pub const VERDICTS: &[&str] = &["complete_won", "cancel_won", "crossed", "late_response", "unresolved"];

const fn expectation(name: &'static str, does: &'static str, own: &'static [Member]) -> Verb {
    Verb { name, does, own, bare: &[], waits: Waits::Never }
}

/// What a recipe may expect of a recording.
pub const EXPECTATIONS: &[Verb] = &[
    expectation(
        "hits",
        "the fault was done",
        &[
            FAULT,
            member("least", ANY, "1", "at least so often"),
            member("most", ANY, "any number", "at most so often"),
        ],
    ),
    expectation(
        "retries-with-new-id",
        "the client makes each call that the fault met again, with an id that is new",
        &[FAULT, WITHIN],
    ),
    expectation("no-retry", "the client makes no call again that the fault met", &[FAULT]),
    expectation(
        "no-duplicate-effect",
        "nothing was done twice: the server tells of its effects, or no call was made twice",
        &[member(
            "fault",
            Kind::Line,
            "the whole recording",
            "only calls that this fault met, and their retries",
        )],
    ),
    expectation(
        "client-closes",
        "the client closes its side: on HTTP the exchange, on stdio the pipe",
        &[FAULT, WITHIN],
    ),
    expectation("client-cancels", "the client gives up each call that the fault met", &[FAULT, WITHIN]),
    expectation(
        "answered",
        "each call that the fault met gets an answer, or its retry does",
        &[FAULT, WITHIN],
    ),
    expectation(
        "verdict",
        "the race of each call that the fault met ends so",
        &[FAULT, member("is", Kind::Choice(VERDICTS), "needed", "how (docs/semantics.md)")],
    ),
    expectation(
        "finding",
        "something is found by this rule",
        &[member("rule", Kind::Line, "needed", "id of the rule (docs/rules.md)")],
    ),
    expectation(
        "no-finding",
        "nothing is found by this rule",
        &[member("rule", Kind::Line, "any that fails", "id of the rule (docs/rules.md)")],
    ),
];

pub(in crate::command) const SPOILS: &[&str] =
    &["truncate", "wrong-id", "wrong-id-type", "duplicate-final", "progress-after-final", "late"];

const fn process(name: &'static str, does: &'static str) -> Verb {
    Verb { name, does, own: &[WHEN], bare: &[], waits: Waits::IfNext }
}
