//! What a listen request asks for, and what its acknowledgement grants.

use crate::model::Name;
use crate::model::names::Names;
use crate::wire::json::Value;

/// URIs and task ids that are kept of one filter. ours: enough for what people watch.
const LIST_LIMIT: usize = 256;

/// Kinds of notification that a subscription can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the wire has these as separate flags")]
pub struct Kinds {
    /// `notifications/tools/list_changed`
    pub tools: bool,
    /// `notifications/prompts/list_changed`
    pub prompts: bool,
    /// `notifications/resources/list_changed`
    pub resources: bool,
    /// `notifications/resources/updated`
    pub updates: bool,
    /// `notifications/tasks`
    pub tasks: bool,
}

impl Kinds {
    /// No kind at all.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Kinds::default()
    }

    /// Those of this that `other` lacks.
    #[must_use]
    pub fn without(self, other: Kinds) -> Kinds {
        Kinds {
            tools: self.tools && !other.tools,
            prompts: self.prompts && !other.prompts,
            resources: self.resources && !other.resources,
            updates: self.updates && !other.updates,
            tasks: self.tasks && !other.tasks,
        }
    }

    /// The kind of a notification; `None`: its method is outside the five.
    #[must_use]
    pub fn of(method: &str) -> Option<Kinds> {
        let none = Kinds::default();
        Some(match method {
            "notifications/tools/list_changed" => Kinds { tools: true, ..none },
            "notifications/prompts/list_changed" => Kinds { prompts: true, ..none },
            "notifications/resources/list_changed" => Kinds { resources: true, ..none },
            "notifications/resources/updated" => Kinds { updates: true, ..none },
            "notifications/tasks" => Kinds { tasks: true, ..none },
            _ => return None,
        })
    }

    /// Whether a notification of this method is among them; methods outside the five are not
    /// bound by a filter.
    #[must_use]
    pub fn allows(self, method: &str) -> bool {
        Kinds::of(method).is_none_or(|kind| kind.without(self).is_none())
    }

    /// What a request of this method reads anew.
    pub(super) fn read_by(method: &str) -> Kinds {
        let none = Kinds::default();
        match method {
            "tools/list" => Kinds { tools: true, ..none },
            "prompts/list" => Kinds { prompts: true, ..none },
            "resources/list" | "resources/templates/list" => Kinds { resources: true, ..none },
            "resources/read" => Kinds { updates: true, ..none },
            "tasks/get" => Kinds { tasks: true, ..none },
            _ => none,
        }
    }

    pub(super) fn and(self, other: Kinds) -> Kinds {
        Kinds {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
            updates: self.updates || other.updates,
            tasks: self.tasks || other.tasks,
        }
    }
}

/// What was asked for, or granted: `params.notifications`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// The kinds.
    pub kinds: Kinds,
    /// `resourceSubscriptions`, as sent.
    pub uris: Box<[Name]>,
    /// `taskIds`, as sent.
    pub task_ids: Box<[Name]>,
    /// It was longer than what is kept, or could not be read: it may hold more.
    pub is_cut: bool,
}

impl Filter {
    pub(super) fn read(notifications: Option<Value<'_>>, names: &mut Names) -> Filter {
        let Some(filter) = notifications else { return Filter::default() };
        let is_true = |name| filter.get(name).and_then(Value::bool) == Some(true);
        let mut is_cut = false;
        let mut list = |name| -> Box<[Name]> {
            let Some(list) = filter.get(name).filter(|list| list.is_array()) else { return Box::default() };
            is_cut |= list.len() > LIST_LIMIT;
            list.items().take(LIST_LIMIT).filter_map(Value::text).map(|text| names.intern(&text)).collect()
        };
        let (uris, task_ids) = (list("resourceSubscriptions"), list("taskIds"));
        let kinds = Kinds {
            tools: is_true("toolsListChanged"),
            prompts: is_true("promptsListChanged"),
            resources: is_true("resourcesListChanged"),
            updates: !uris.is_empty(),
            tasks: !task_ids.is_empty(),
        };
        Filter { kinds, uris, task_ids, is_cut }
    }

    /// Whether a notification of this method may come under it.
    #[must_use]
    pub fn allows(&self, method: &str) -> bool {
        self.is_cut || self.kinds.allows(method)
    }
}
