//! The rules that a recording cannot decide, and what it lacks for them.
//!
//! Silence of a rule means that nothing is wrong only where the rule could have seen it.

use std::collections::HashSet;

use super::Judge;
use super::catalogue::{self, Entry, Need};
use crate::event::Transport;
use crate::machine::policy::Policy;
use crate::model::{CallState, Model, RowKind, ScopeIdx};
use crate::spec::era::Era;

/// A rule that could not be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// Its id in the catalogue.
    pub rule: &'static str,
    /// What the recording lacks; at least one thing.
    pub lacks: Vec<Need>,
}

impl Judge {
    /// The rules that hold for messages of this recording and could not be decided, in the
    /// catalogue's order. A rule that found something nevertheless is not among them. Meant for the
    /// end: it goes through the whole model.
    #[must_use]
    pub fn undecided(&self, model: &Model) -> Vec<Undecided> {
        let scene = Scene::of(model);
        let found: HashSet<&str> = self.findings().iter().map(|finding| finding.rule).collect();
        let silent = catalogue::entries().iter().filter(|entry| !found.contains(entry.id));
        silent.filter_map(|entry| undecided(entry, &scene, &self.policy)).collect()
    }
}

fn undecided(entry: &Entry, scene: &Scene, policy: &Policy) -> Option<Undecided> {
    let concerns = scene.spoken.iter().any(|(era, transport)| entry.applies(*era, *transport));
    let lacks: Vec<Need> =
        entry.needs.iter().copied().filter(|need| scene.lacks(*need, entry, policy)).collect();
    (concerns && !lacks.is_empty()).then_some(Undecided { rule: entry.id, lacks })
}

/// What a recording has to offer.
struct Scene {
    /// Eras and transports of its messages.
    spoken: HashSet<(Option<Era>, Transport)>,
    /// Methods called, and those of them that were answered.
    called: HashSet<String>,
    answered: HashSet<String>,
    is_full: bool,
    has_capabilities: bool,
    has_telemetry: bool,
}

impl Scene {
    fn of(model: &Model) -> Scene {
        let (mut spoken, mut has_telemetry) = (HashSet::new(), false);
        for row in model.rows() {
            match row.kind {
                RowKind::Telemetry => has_telemetry = true,
                RowKind::Request | RowKind::Notification | RowKind::Result | RowKind::Error => {
                    spoken.insert((row.era, row.transport));
                }
                _ => {}
            }
        }
        let (mut called, mut answered) = (HashSet::new(), HashSet::new());
        for call in model.calls() {
            let into = if call.state == CallState::AnsweredOk { &mut answered } else { &mut called };
            let method = model.text(call.method);
            if !into.contains(method) {
                into.insert(method.to_owned());
            }
        }
        called.extend(answered.iter().cloned());
        let said =
            |scope| model.capabilities(scope).map(|said| said.initialized().or(said.discovered()).is_some());
        let scopes = (0..).map(ScopeIdx).take(model.scopes().len());
        Scene {
            spoken,
            called,
            answered,
            is_full: model.overview().is_full,
            has_capabilities: scopes.filter_map(said).any(|is_said| is_said),
            has_telemetry,
        }
    }

    fn lacks(&self, need: Need, entry: &Entry, policy: &Policy) -> bool {
        match need {
            Need::Full => !self.is_full,
            Need::Definition => self.lacks_definition(entry.id),
            Need::Capabilities => !self.has_capabilities,
            Need::Policy => *policy == Policy::default(),
            Need::Contract => policy.contracts.is_empty(),
            Need::Telemetry => !self.has_telemetry,
            Need::TwoTaps | Need::Never => true,
        }
    }

    /// Something was used, and no list that defines it was answered.
    fn lacks_definition(&self, rule: &str) -> bool {
        let (used, lists): (&str, &[&str]) = match rule.split('-').next() {
            Some("PMT") => ("prompts/get", &["prompts/list"]),
            Some("RES") => ("resources/read", &["resources/list", "resources/templates/list"]),
            Some("CMP") => ("completion/complete", &["prompts/list", "resources/templates/list"]),
            _ => ("tools/call", &["tools/list"]),
        };
        self.called.contains(used) && !lists.iter().any(|list| self.answered.contains(*list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Dir::{C2s, S2c, Tap};
    use crate::event::What;
    use crate::model::script::{Script, call, result};

    const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":3,"method":"server/discover"}"#;
    const CLOCKS: &str = "[limits]\ngrace_ms = 700";
    const CONTRACT: &str = "[[contracts]]\ntools = ['a']\nside_effect = 'none'";

    /// A rule that holds where this one does, with another id and these needs.
    fn rule(like: &str, id: &'static str, needs: &[Need]) -> Entry {
        Entry { id, needs: needs.to_vec(), ..catalogue::find(like).unwrap().clone() }
    }

    /// A call and its answer on stdio, then what is added.
    fn script(add: impl Fn(&mut Script)) -> Script {
        let mut script = Script::default();
        script.line(0, C2s, &call("1", "a")).line(1, S2c, &result("1"));
        add(&mut script);
        script
    }

    #[test]
    fn a_rule_is_undecided_where_the_recording_lacks_what_it_needs() {
        let plain = script(|_| ());
        let late = {
            let mut late = script(|_| ());
            late.events.iter_mut().for_each(|event| event.n += 10);
            late
        };
        let listed = script(|script| {
            script.line(2, C2s, LIST).line(3, S2c, &result("2"));
        });
        let discovered = script(|script| {
            script.line(2, C2s, DISCOVER).line(3, S2c, &result("3"));
        });
        let telling = script(|script| {
            script.push(2, Tap, None, What::Telemetry("{}".to_owned()));
        });
        let cases: [(&Script, Need, &str, bool); 16] = [
            (&plain, Need::Full, "", false),
            (&late, Need::Full, "", true),
            (&plain, Need::Definition, "", true),
            (&listed, Need::Definition, "", false),
            (&plain, Need::Capabilities, "", true),
            (&discovered, Need::Capabilities, "", false),
            (&plain, Need::Telemetry, "", true),
            (&telling, Need::Telemetry, "", false),
            (&plain, Need::Policy, "", true),
            (&plain, Need::Policy, CLOCKS, false),
            (&plain, Need::Contract, "", true),
            (&plain, Need::Contract, CLOCKS, true),
            (&plain, Need::Contract, CONTRACT, false),
            (&plain, Need::Policy, CONTRACT, false),
            (&plain, Need::TwoTaps, CONTRACT, true),
            (&plain, Need::Never, CONTRACT, true),
        ];
        for (script, need, policy, expected) in cases {
            let (scene, policy) = (Scene::of(&script.fold()), toml::from_str(policy).unwrap());
            let told = undecided(&rule("RPC-01", "TOOL-01", &[need]), &scene, &policy);
            let expected = expected.then(|| Undecided { rule: "TOOL-01", lacks: vec![need] });
            assert_eq!(told, expected, "{need:?} {policy:?}");
        }
    }

    #[test]
    fn only_rules_of_what_was_spoken_and_used_are_undecided() {
        let scene = Scene::of(&script(|_| ()).fold());
        let cases = [
            (rule("RPC-01", "RPC-01", &[Need::Never]), true),
            (rule("CAN-05", "CAN-05", &[Need::Never]), true),
            (rule("RPC-07", "RPC-07", &[Need::Never]), false),
            (rule("CAN-10", "CAN-10", &[Need::Never]), false),
            (rule("RPC-01", "RPC-01", &[]), false),
            (rule("RPC-01", "PMT-01", &[Need::Definition]), false),
            (rule("RPC-01", "RES-01", &[Need::Definition]), false),
            (rule("RPC-01", "PMT-01", &[Need::Definition, Need::TwoTaps]), true),
        ];
        for (entry, expected) in cases {
            let told = undecided(&entry, &scene, &Policy::default());
            assert_eq!(told.is_some(), expected, "{entry:?}");
        }
        let nothing = Scene::of(&Script::default().fold());
        assert_eq!(undecided(&rule("RPC-01", "RPC-01", &[Need::Never]), &nothing, &Policy::default()), None);
    }
}
