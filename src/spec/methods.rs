//! Methods: which exist in which era, who may send them, and what they are about.

use MethodKind::{Notification, Request};
use Sender::{Both, Client, Server};

use super::era::Era;

/// Who may send a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The client only.
    Client,
    /// The server only.
    Server,
    /// Either side.
    Both,
}

/// Whether an answer is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// Has an id and gets an answer.
    Request,
    /// Has none and gets none.
    Notification,
}

/// A method as some eras know it. A name may occur more than once where its sender changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Its name on the wire.
    pub name: &'static str,
    /// Request or notification.
    pub kind: MethodKind,
    /// Who may send it in these eras.
    pub sender: Sender,
    /// The first era that has it.
    pub since: Era,
    /// The last era that has it; `None`: it is still there.
    pub until: Option<Era>,
    /// It belongs to an extension that both sides must have agreed on.
    pub is_extension: bool,
}

/// The method that opens a legacy session.
pub const INITIALIZE: &str = "initialize";
/// The modern era's question for versions and capabilities.
pub const DISCOVER: &str = "server/discover";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists the tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Lists the resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists the templates of resources.
pub const TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Lists the prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Makes the messages of a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Asks what an argument may be.
pub const COMPLETE: &str = "completion/complete";
/// The list of tools is another one.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The list of prompts is another one.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The list of resources is another one.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// A resource is another one.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// The modern era's Tasks extension: a task has come to another state.
pub const TASKS: &str = "notifications/tasks";
/// The modern era's subscription.
pub const LISTEN: &str = "subscriptions/listen";
/// First message of a subscription.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Gives up a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Progress of a request, by its token.
pub const PROGRESS: &str = "notifications/progress";
/// A log message.
pub const MESSAGE: &str = "notifications/message";
/// Legacy: sets the level of the log messages of a session.
pub const SET_LEVEL: &str = "logging/setLevel";
/// 2025-11-25: waits for the end of a task, and gives what it has made.
pub const TASKS_RESULT: &str = "tasks/result";
/// 2025-11-25: lists the tasks of a client.
pub const TASKS_LIST: &str = "tasks/list";
/// Legacy: asks whether the other side is there.
pub const PING: &str = "ping";
/// Legacy: asks for notifications about a resource.
pub const SUBSCRIBE: &str = "resources/subscribe";
/// Legacy: asks for no more of them.
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Ends the handshake of a legacy session.
pub const INITIALIZED: &str = "notifications/initialized";

const FIRST: Era = Era::V2024_11_05;
const LAST_LEGACY: Option<Era> = Some(Era::V2025_11_25);

/// The state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Answers for a task.
pub const TASKS_UPDATE: &str = "tasks/update";
/// The wish that a task ends.
pub const TASKS_CANCEL: &str = "tasks/cancel";

/// Every method of every era. Source: the schemas of the five revisions and of the Tasks
/// extension; requests that travel inside `inputRequests` are no messages and are not listed for
/// the modern era.
pub const ALL: [Method; 39] = [
    // All eras.
    row("tools/list", Request, Client, FIRST, None),
    row("tools/call", Request, Client, FIRST, None),
    row("resources/list", Request, Client, FIRST, None),
    row("resources/templates/list", Request, Client, FIRST, None),
    row("resources/read", Request, Client, FIRST, None),
    row("prompts/list", Request, Client, FIRST, None),
    row("prompts/get", Request, Client, FIRST, None),
    row("completion/complete", Request, Client, FIRST, None),
    row("notifications/cancelled", Notification, Both, FIRST, None),
    row("notifications/message", Notification, Server, FIRST, None),
    row("notifications/resources/updated", Notification, Server, FIRST, None),
    row("notifications/resources/list_changed", Notification, Server, FIRST, None),
    row("notifications/tools/list_changed", Notification, Server, FIRST, None),
    row("notifications/prompts/list_changed", Notification, Server, FIRST, None),
    // Both sides report progress until requests of the server were removed.
    row("notifications/progress", Notification, Both, FIRST, LAST_LEGACY),
    row("notifications/progress", Notification, Server, Era::V2026_07_28, None),
    // Legacy.
    row("initialize", Request, Client, FIRST, LAST_LEGACY),
    row("notifications/initialized", Notification, Client, FIRST, LAST_LEGACY),
    row("ping", Request, Both, FIRST, LAST_LEGACY),
    row("logging/setLevel", Request, Client, FIRST, LAST_LEGACY),
    row("resources/subscribe", Request, Client, FIRST, LAST_LEGACY),
    row("resources/unsubscribe", Request, Client, FIRST, LAST_LEGACY),
    row("notifications/roots/list_changed", Notification, Client, FIRST, LAST_LEGACY),
    row("roots/list", Request, Server, FIRST, LAST_LEGACY),
    row("sampling/createMessage", Request, Server, FIRST, LAST_LEGACY),
    row("elicitation/create", Request, Server, Era::V2025_06_18, LAST_LEGACY),
    row("notifications/elicitation/complete", Notification, Server, Era::V2025_11_25, LAST_LEGACY),
    row("tasks/get", Request, Both, Era::V2025_11_25, LAST_LEGACY),
    row("tasks/result", Request, Both, Era::V2025_11_25, LAST_LEGACY),
    row("tasks/list", Request, Both, Era::V2025_11_25, LAST_LEGACY),
    row("tasks/cancel", Request, Both, Era::V2025_11_25, LAST_LEGACY),
    row("notifications/tasks/status", Notification, Both, Era::V2025_11_25, LAST_LEGACY),
    // Modern.
    row("server/discover", Request, Client, Era::V2026_07_28, None),
    row("subscriptions/listen", Request, Client, Era::V2026_07_28, None),
    row("notifications/subscriptions/acknowledged", Notification, Server, Era::V2026_07_28, None),
    extension("tasks/get", Request, Client),
    extension("tasks/update", Request, Client),
    extension("tasks/cancel", Request, Client),
    extension("notifications/tasks", Notification, Server),
];

const fn row(name: &'static str, kind: MethodKind, sender: Sender, since: Era, until: Option<Era>) -> Method {
    Method { name, kind, sender, since, until, is_extension: false }
}

const fn extension(name: &'static str, kind: MethodKind, sender: Sender) -> Method {
    Method { name, kind, sender, since: Era::V2026_07_28, until: None, is_extension: true }
}

impl Method {
    /// The method of this name in an era; `None`: that era does not know it (RPC-28).
    #[must_use]
    pub fn find(name: &str, era: Era) -> Option<&'static Method> {
        ALL.iter().find(|method| method.name == name && method.is_of(era))
    }

    /// This era has it, in this form.
    #[must_use]
    pub fn is_of(&self, era: Era) -> bool {
        self.since <= era && self.until.is_none_or(|until| era <= until)
    }
}

/// A notification by its name; holds for methods that no era knows as well.
#[must_use]
pub fn is_notification(name: &str) -> bool {
    name.starts_with("notifications/")
}

/// Where the thing that a message is about stands below `params`: paths of member names, of which
/// the first that exists counts. Empty: the method has no such thing.
#[must_use]
pub fn target_paths(method: &str) -> &'static [&'static [&'static str]] {
    match method {
        "tools/call" | "prompts/get" => &[&["name"]],
        "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "notifications/resources/updated" => &[&["uri"]],
        "tasks/get"
        | "tasks/update"
        | "tasks/cancel"
        | "tasks/result"
        | "notifications/tasks"
        | "notifications/tasks/status" => &[&["taskId"]],
        "completion/complete" => &[&["ref", "name"], &["ref", "uri"]],
        "logging/setLevel" | "notifications/message" => &[&["level"]],
        "notifications/elicitation/complete" => &[&["elicitationId"]],
        "elicitation/create" => &[&["mode"]],
        _ => &[],
    }
}

/// Answers to this method may ask for input, in the modern era (MRT-01).
#[must_use]
pub fn may_ask_for_input(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_knows_its_methods_and_their_senders() {
        use Era::*;
        let cases: [(&str, Era, Option<Sender>); 24] = [
            ("tools/call", V2024_11_05, Some(Client)),
            ("tools/call", V2026_07_28, Some(Client)),
            ("initialize", V2025_11_25, Some(Client)),
            ("initialize", V2026_07_28, None),
            ("ping", V2025_03_26, Some(Both)),
            ("ping", V2026_07_28, None),
            ("server/discover", V2025_11_25, None),
            ("server/discover", V2026_07_28, Some(Client)),
            ("elicitation/create", V2025_03_26, None),
            ("elicitation/create", V2025_06_18, Some(Server)),
            ("elicitation/create", V2026_07_28, None),
            ("sampling/createMessage", V2024_11_05, Some(Server)),
            ("notifications/progress", V2025_11_25, Some(Both)),
            ("notifications/progress", V2026_07_28, Some(Server)),
            ("notifications/cancelled", V2026_07_28, Some(Both)),
            ("notifications/elicitation/complete", V2025_06_18, None),
            ("notifications/elicitation/complete", V2025_11_25, Some(Server)),
            ("tasks/result", V2025_06_18, None),
            ("tasks/result", V2025_11_25, Some(Both)),
            ("tasks/result", V2026_07_28, None),
            ("tasks/get", V2026_07_28, Some(Client)),
            ("tasks/update", V2025_11_25, None),
            ("notifications/tasks", V2026_07_28, Some(Server)),
            ("tools/calls", V2026_07_28, None),
        ];
        for (name, era, sender) in cases {
            assert_eq!(Method::find(name, era).map(|m| m.sender), sender, "{name} {}", era.as_str());
        }
    }

    #[test]
    fn no_era_knows_a_name_twice_and_names_tell_notifications() {
        for era in Era::ALL {
            for method in ALL.iter().filter(|m| m.is_of(era)) {
                assert_eq!(ALL.iter().filter(|m| m.name == method.name && m.is_of(era)).count(), 1);
            }
        }
        for method in ALL {
            assert_eq!(is_notification(method.name), method.kind == Notification, "{}", method.name);
            assert!(method.until.is_none_or(|until| method.since <= until));
        }
    }

    #[test]
    fn mirrored_names_are_targets() {
        for method in ALL {
            if let Some(member) = crate::spec::headers::name_member(method.name) {
                assert_eq!(target_paths(method.name), [[member]], "{}", method.name);
            }
        }
        assert_eq!(target_paths("completion/complete").len(), 2);
        assert!(target_paths("tools/list").is_empty());
        assert!(may_ask_for_input(TOOLS_CALL) && !may_ask_for_input(TOOLS_LIST));
    }
}
