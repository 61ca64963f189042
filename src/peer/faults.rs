//! The switches with which the reference peers do one thing wrong, on purpose: each fault that the
//! rules know can be seen on a real wire. All are off unless asked for; the correct code asks
//! [`Faults::is_on`] at the one place where it would do otherwise.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use crate::spec::transport::Transport;

/// Which peer has a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The reference client.
    Client,
    /// The reference server.
    Server,
}

impl Side {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// Names each fault once: its side, the transport that it is on (`both`), the rules that it
/// provokes, and what the peer does wrong.
macro_rules! faults {
    ($($fault:ident $name:literal $side:ident $on:ident [$($rule:literal)*] $says:literal;)*) => {
        /// One thing that a peer can do wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $(#[doc = $says] $fault,)*
        }

        impl Fault {
            /// Every fault, those of the server first.
            pub const ALL: &[Fault] = &[$(Fault::$fault),*];

            /// Its name on the command line and on the control socket.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Fault::$fault => $name,)* }
            }

            /// Which peer has it.
            #[must_use]
            pub fn side(self) -> Side {
                match self { $(Fault::$fault => Side::$side,)* }
            }

            /// The transport on which it can be seen; `None`: both.
            #[must_use]
            pub fn transport(self) -> Option<Transport> {
                match self { $(Fault::$fault => faults!(@on $on),)* }
            }

            /// The rules that it provokes, each of which fires; none where the wire cannot tell.
            #[must_use]
            pub fn rules(self) -> &'static [&'static str] {
                match self { $(Fault::$fault => &[$($rule),*],)* }
            }

            /// What the peer does wrong, in one sentence.
            #[must_use]
            pub fn says(self) -> &'static str {
                match self { $(Fault::$fault => $says,)* }
            }
        }
    };
    (@on both) => { None };
    (@on stdio) => { Some(Transport::Stdio) };
    (@on http) => { Some(Transport::Http) };
}

faults! {
    // Cancels and ends of calls.
    LateAnswer "late_answer" Server stdio ["CAN-05" "CAN-17"] "Answers a call although it has read its cancel.";
    ProgressAfterCancel "progress_after_cancel" Server stdio ["CAN-06"] "Goes on telling progress of a call that it knows to be cancelled.";
    WorksOn "works_on" Server http ["CAN-11"] "Works on for a client that has left.";
    CancelsCalls "cancels_calls" Server stdio ["CAN-07"] "Ends a call by a cancel of its own.";
    NeverAnswers "never_answers" Server both ["REL-11"] "Forgets a call and never answers it.";
    AnswersTwice "answers_twice" Server stdio ["RPC-10"] "Answers each call two times.";
    AnswersNotifications "answers_notifications" Server stdio ["RPC-12"] "Answers notifications as if they were requests.";
    IdAsText "id_as_text" Server both ["RPC-09"] "Answers under an id of another JSON type.";
    StrayAnswer "stray_answer" Server both ["RPC-08"] "Answers under an id that nobody has used.";
    AsksClient "asks_client" Server both ["RPC-24"] "Sends a request of its own to a modern client.";
    CleanupUnshielded "cleanup_unshielded" Server both ["REL-12"] "Lets the cancel end the cleanup too, so that what is held stays held.";
    CleanupOverruns "cleanup_overruns" Server both ["REL-12"] "Takes longer over the cleanup than its limit, which it does not heed.";
    // Progress.
    ProgressStands "progress_stands" Server both ["PRG-03"] "Tells the same value of progress again and again.";
    ProgressAfterAnswer "progress_after_answer" Server stdio ["PRG-02"] "Tells progress of a call that it has answered.";
    StrayToken "stray_token" Server both ["PRG-01"] "Tells progress under a token that nobody offered.";
    Unbounded "unbounded" Server both ["REL-06"] "Lets what waits to be written grow without a bound.";
    // Effects and keys.
    NoKeySupport "no_key_support" Server both ["REL-03"] "Takes no notice of idempotency keys.";
    CheckThenAct "check_then_act" Server both ["REL-02"] "Looks a key up and takes effect in two steps, with room for another call between.";
    MemoryLedger "memory_ledger" Server both ["REL-03"] "Keeps keys in memory only, so that a restart or another replica does not know them.";
    AliasResults "alias_results" Server both ["REL-04"] "Hands out the stored result itself, so that whoever changes it changes every replay.";
    NoFingerprint "no_fingerprint" Server both ["REL-05"] "Takes a known key for any arguments.";
    ReplicaMemory "replica_memory" Server both [] "Remembers the last draft of each client, which is then added to without its handle; another replica does not know of it.";
    CrashAfterEffect "crash_after_effect" Server stdio ["STD-08"] "Ends between the effect and the note of its key.";
    DropResponseAfterCommit "drop_response_after_commit" Server http ["SSE-06"] "Loses the answer of a call whose effect is done.";
    // Streams over HTTP.
    FinalLost "final_lost" Server http ["SSE-06"] "Ends event streams before their answers.";
    TornEvent "torn_event" Server http ["SSE-10"] "Leaves out the blank line after the last event.";
    NoBufferingHeader "no_buffering_header" Server http ["SSE-07"] "Sends event streams without X-Accel-Buffering.";
    Bursts "bursts" Server http ["SSE-13"] "Gathers the events of a stream and sends them in one piece.";
    EventIds "event_ids" Server http ["SSE-09"] "Gives events an id and a retry time.";
    MintsSession "mints_session" Server http ["HTTP-21"] "Hands out a session id.";
    // Subscriptions.
    EventBeforeAck "event_before_ack" Server both ["SUB-02"] "Sends an event before the subscription is acknowledged.";
    TagOfOtherType "tag_of_other_type" Server both ["SUB-03"] "Tags events with the id of the listen request as a string.";
    Untagged "untagged" Server both ["SUB-07"] "Sends the events of a subscription without its tag.";
    // Lists and tasks.
    TwinTools "twin_tools" Server both ["TOOL-03"] "Lists two tools under one name.";
    EarlyHandle "early_handle" Server both ["TSK-07"] "Hands out the handle of a task before it can be read.";
    TaskChanges "task_changes" Server both ["TSK-06"] "Changes the state of a task that has ended.";
    FinishesAnyway "finishes_anyway" Server both ["TSK-12"] "Brings a task to its end although it has acknowledged its cancel; legal, and the reason to watch on.";
    // The process.
    Prints "prints" Server stdio ["STD-01"] "Prints lines of its log on standard output.";
    IgnoresEof "ignores_eof" Server stdio ["STD-09"] "Stays after its standard input has ended.";

    // The client: cancels and limits.
    PostsCancel "posts_cancel" Client http ["CAN-10"] "Posts a cancel where closing the stream is the signal.";
    NoMaximum "no_maximum" Client both ["TMO-02"] "Waits for as long as there is progress.";
    CommentsCount "comments_count" Client http ["REL-08"] "Takes comments of a stream for a sign that the call gets on.";
    SharedToken "shared_token" Client both ["PRG-06" "PRG-07"] "Uses one progress token for all its calls.";
    ReusesId "reuses_id" Client both ["RPC-05" "RPC-06"] "Uses an id again while its request is open.";
    SlowReader "slow_reader" Client http ["FLW-01"] "Stops reading a stream for a while.";
    // Retries and effects.
    RetriesWithoutKey "retries_without_key" Client both ["REL-01"] "Leaves the idempotency key out, and makes a call again whose outcome it does not know.";
    RetriesUnsafe "retries_unsafe" Client both ["REL-09"] "Makes a call of a tool without a key again by itself, although that changes something.";
    KeyForTwo "key_for_two" Client both ["REL-10"] "Uses one idempotency key for two wishes.";
    AbandonsTask "abandons_task" Client both ["TSK-10"] "Takes the handle of a task and never asks what became of it.";
    CarelessReconnect "careless_reconnect" Client both ["SUB-19"] "Listens again after a lost stream and reads nothing of what it may have missed.";
    NoBackoff "no_backoff" Client both ["REL-20"] "Connects again and again without waiting longer.";
    // Eras.
    Downgrades "downgrades" Client both ["VER-05"] "Falls back to initialize although the server is known to be modern.";
    FallsBackAnywhere "falls_back_anywhere" Client both ["REL-07"] "Falls back to initialize with servers that nobody has listed.";
    OpensGet "opens_get" Client http ["HTTP-20"] "Opens a GET stream as in earlier revisions.";
    Resumes "resumes" Client http ["HTTP-22"] "Sends Last-Event-ID and hopes for what it has missed.";
    // Header fields over HTTP.
    NoVersionHeader "no_version_header" Client http ["HTTP-03"] "Leaves MCP-Protocol-Version out.";
    OtherVersionHeader "other_version_header" Client http ["HTTP-04"] "Names another version in the header than in the body.";
    NoMethodHeader "no_method_header" Client http ["HTTP-05"] "Leaves Mcp-Method out.";
    NoNameHeader "no_name_header" Client http ["HTTP-06"] "Leaves Mcp-Name out.";
    OtherNameHeader "other_name_header" Client http ["HTTP-07"] "Names another target in the header than in the body.";
    OtherParamHeader "other_param_header" Client http ["HTTP-27"] "Sends another value in the header field of an argument than in the argument.";
}

impl Fault {
    /// The fault of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Fault> {
        Fault::ALL.iter().copied().find(|fault| fault.as_str() == name)
    }

    /// The faults of one side, in order.
    pub fn of(side: Side) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| fault.side() == side)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no such switch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no fault `{name}`; --faults lists them")]
pub struct UnknownFault {
    /// As it was given.
    pub name: String,
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Fault, UnknownFault> {
        Fault::from_name(name).ok_or_else(|| UnknownFault { name: name.to_owned() })
    }
}

/// The switches of one peer, which may be turned while it runs.
#[derive(Debug, Default)]
pub struct Faults {
    on: AtomicU64,
}

// A switch is one bit.
const _: () = assert!(Fault::ALL.len() <= 64);

impl Faults {
    /// Switches that are on from the start.
    #[must_use]
    pub fn with(faults: impl IntoIterator<Item = Fault>) -> Faults {
        let switches = Faults::default();
        for fault in faults {
            switches.turn(fault, true);
        }
        switches
    }

    /// Whether the peer is to do this wrong.
    #[inline]
    #[must_use]
    pub fn is_on(&self, fault: Fault) -> bool {
        self.on.load(Ordering::Relaxed) & bit(fault) != 0
    }

    /// Turns one switch; work that has begun may have passed the place where it is asked for.
    pub fn turn(&self, fault: Fault, on: bool) {
        if on {
            self.on.fetch_or(bit(fault), Ordering::Relaxed);
        } else {
            self.on.fetch_and(!bit(fault), Ordering::Relaxed);
        }
    }

    /// Those that are on, in order.
    pub fn all_on(&self) -> impl Iterator<Item = Fault> + '_ {
        Fault::ALL.iter().copied().filter(|fault| self.is_on(*fault))
    }
}

fn bit(fault: Fault) -> u64 {
    1 << (fault as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own_that_is_read_back() {
        let names: HashSet<&str> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        for fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(*fault));
            assert!(fault.says().ends_with('.'), "{fault}");
            // Which of several replicas is asked cannot be seen by a tap before one of them.
            assert_eq!(fault.rules().is_empty(), *fault == Fault::ReplicaMemory, "{fault}");
        }
        assert!("no such".parse::<Fault>().is_err());
        let sides = Fault::ALL.iter().map(|fault| fault.side() == Side::Client);
        assert!(sides.is_sorted(), "those of the server come first");
    }

    #[test]
    fn a_switch_turns_itself_and_nothing_else() {
        let faults = Faults::with([Fault::Prints, Fault::TwinTools]);
        for fault in Fault::ALL {
            let was: Vec<_> = faults.all_on().filter(|other| other != fault).collect();
            faults.turn(*fault, true);
            assert!(faults.is_on(*fault));
            faults.turn(*fault, false);
            assert!(!faults.is_on(*fault));
            assert_eq!(faults.all_on().collect::<Vec<_>>(), was);
        }
    }
}
