//! Faults: what the tap does to the traffic at the moment. The moment for it: "what do I hold, and
//! what did I arm?"
//!
//! A line is a held message or an armed rule; held messages come first, for their client waits.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::act::tell;
use super::ink::Ink;
use super::msg::{Command, Feed};
use super::paint::{self, Scroll};
use super::prompt::{Kind, Prompt};
use super::state::{State, View};
use super::units;
use crate::command::verbs::{VERBS, Verb, Waits};
use crate::command::{ArmedRule, HeldMessage, Status};
use crate::config::keys::Action;
use crate::config::theme::Role;
use crate::model::{CallIdx, RowIdx};
use crate::wire::jsonrpc::Id;

/// The keys that mean something in the list.
pub(super) const HINTS: [(Action, &str); 8] = [
    (Action::Order, "order"),
    (Action::Release, "release"),
    (Action::ReleaseAll, "all"),
    (Action::ReleaseReverse, "in reverse"),
    (Action::Drop, "drop, disarm"),
    (Action::Edit, "edit"),
    (Action::MoreTime, "+30 s"),
    (Action::AllOff, "all off"),
];

/// What [`Action::MoreTime`] adds.
const MORE: &str = "30s";

/// Lines above the palette: the top, and a few of the list.
const LINES_ABOVE: u16 = 8;

const WHAT: usize = 10;
const SINCE: usize = 18;

/// One line of the list.
enum Item<'a> {
    Held(&'a HeldMessage),
    Rule(&'a ArmedRule),
}

fn items(status: &Status) -> impl Iterator<Item = Item<'_>> {
    status.held.iter().map(Item::Held).chain(status.rules.iter().map(Item::Rule))
}

/// Lines of the list.
pub(super) fn len(state: &State) -> usize {
    state.status.as_ref().map_or(0, |status| items(status).count())
}

fn selected(state: &State) -> Option<Item<'_>> {
    items(state.status.as_ref()?).nth(state.hands.at)
}

/// Does an action that gives orders; `None`: it is another one.
pub(super) fn act(state: &mut State, action: Action) -> Option<Vec<Command>> {
    let order = match (action, selected(state).filter(|_| state.view == View::Hands)) {
        (Action::Order, _) => {
            open(state);
            return Some(Vec::new());
        }
        (Action::ReleaseAll, _) => "release all".to_owned(),
        (Action::ReleaseReverse, _) => "release all reverse".to_owned(),
        (Action::AllOff, _) => "disarm all".to_owned(),
        (Action::Release, Some(Item::Held(held))) => format!("release {}", held.number),
        (Action::Drop, Some(Item::Held(held))) => format!("drop held={}", held.number),
        (Action::Drop, Some(Item::Rule(rule))) => format!("disarm {}", rule.number),
        (Action::MoreTime, Some(Item::Held(held))) => format!("extend held={} more={MORE}", held.number),
        (Action::Edit, Some(Item::Held(held))) => {
            let text = held.text.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("edit held={} text=\"{text}\"", held.number);
            state.prompt = Some(Prompt::new(Kind::Order, &line));
            return Some(Vec::new());
        }
        (Action::Release | Action::Drop | Action::MoreTime | Action::Edit, _) => {
            tell(state, "select a held message in Faults first");
            return Some(Vec::new());
        }
        _ => return None,
    };
    Some(if can_order(state) { vec![Command::Order(order)] } else { Vec::new() })
}

/// Orders reach a tap from here; says why not.
fn can_order(state: &mut State) -> bool {
    let is_live = state.session.as_ref().is_some_and(|session| session.feed() == Feed::Live);
    if is_live && state.status.is_some() {
        return true;
    }
    tell(state, if is_live { "this tap takes no orders" } else { "only a running tap takes orders" });
    false
}

/// Opens the line in which an order is typed, about the selected call.
fn open(state: &mut State) {
    if can_order(state) {
        let target = target(state);
        state.prompt = Some(Prompt::new(Kind::Order, "").about(target));
    }
}

/// A filter that picks the selected call alone.
fn target(state: &State) -> Option<String> {
    let session = state.session.as_ref()?;
    let item = state.item()?;
    let call = match state.view {
        View::Stream => session.model.row(RowIdx(item))?.call?,
        _ => CallIdx(item),
    };
    let call = session.model.call(call)?;
    let (Id::Int(id) | Id::Str(id)) = &call.id;
    let is_plain = id.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let id = if is_plain { format!("id:{id}") } else { format!("id:\"{id}\"") };
    Some(match call.stream {
        Some(stream) => format!("{id} stream:{stream}"),
        None => id,
    })
}

/// Draws the list.
pub(super) fn draw(state: &State, columns: Rect, list: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let set = ink.charset;
    let names = [set.pad(" what", WHAT + 1), set.pad("since, until", SINCE), "message or rule".to_owned()];
    frame.render_widget(Span::styled(names.concat(), ink.style(Role::Muted)), columns);
    let Some(status) = &state.status else {
        let text = " this recording is not live, or its tap takes no orders";
        frame.render_widget(ink.span(text, Role::Muted), list);
        return;
    };
    let len = len(state);
    if len == 0 {
        frame.render_widget(ink.span(" nothing is held or armed; x gives an order", Role::Muted), list);
    }
    let height = usize::from(list.height);
    for (y, line) in state.hands.visible(len, height).enumerate() {
        let Some(item) = items(status).nth(line) else { continue };
        let drawn = draw_line(&item, usize::from(list.width), ink);
        paint::item(drawn, paint::line_at(list, y), line == state.hands.at, true, ink, frame);
    }
    paint::scroll_bar(list, Scroll { top: state.hands.top, len }, ink, frame);
}

fn draw_line(item: &Item<'_>, width: usize, ink: &Ink<'_>) -> Line<'static> {
    let set = ink.charset;
    let rest = width.saturating_sub(2 + WHAT + SINCE);
    let (what, since, text, role) = match item {
        Item::Held(held) => {
            let (held_for, left) = (held.held.to_ns(), held.released_in.to_ns());
            let since = format!("{}, {} left", units::span(held_for), units::span(left));
            (format!("HELD {}", held.number), since, held.says.clone(), Role::Warn)
        }
        Item::Rule(armed) => {
            let since = format!("hits {} ({})", armed.hits, armed.by.as_str());
            (format!("rule {}", armed.number), since, armed.rule.to_string(), Role::Midwire)
        }
    };
    Line::from(vec![
        Span::styled(set.pad(&what, WHAT), ink.style(role)),
        Span::styled(set.pad(&since, SINCE), ink.style(Role::Muted)),
        Span::styled(set.fit(&text, rest), ink.style(Role::Text)),
    ])
}

/// What to tell below the list about the selected line.
pub(super) fn answer(state: &State) -> Option<[String; 2]> {
    Some(match selected(state)? {
        Item::Held(held) => [held.says.clone(), held.text.clone()],
        Item::Rule(armed) => {
            let name = armed.rule.name.clone().unwrap_or_else(|| armed.rule.effect.name().to_owned());
            let does = Verb::find(armed.rule.effect.name()).map_or("", |verb| verb.does);
            [format!("{name}: {does}"), armed.rule.to_string()]
        }
    })
}

/// Above the line of an order while it is typed: the verbs that it may become, or what its verb
/// takes.
pub(super) fn palette(state: &State, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let Some(prompt) = state.prompt.as_ref().filter(|prompt| prompt.kind() == Kind::Order) else { return };
    let hints = state.areas().hints;
    let room = usize::from(hints.y.saturating_sub(LINES_ABOVE));
    let lines = palette_lines(prompt.text(), room);
    let height = u16::try_from(lines.len()).unwrap_or(0).min(hints.y.saturating_sub(2));
    let area = Rect { y: hints.y.saturating_sub(height), height, ..hints };
    for (y, (name, means)) in lines.iter().take(usize::from(height)).enumerate() {
        let width = usize::from(area.width).saturating_sub(20);
        let line = Line::from(vec![
            ink.span(&format!(" {name:17} "), Role::Key),
            Span::styled(ink.charset.pad(&ink.charset.fit(means, width), width), ink.style(Role::Text)),
        ]);
        let at = paint::line_at(area, y);
        frame.render_widget(ratatui::widgets::Clear, at);
        frame.render_widget(line, at);
    }
}

/// Name and meaning, as many as there is room for.
fn palette_lines(text: &str, room: usize) -> Vec<(String, String)> {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_at_verb = !text.trim_start().contains(char::is_whitespace);
    let lines: Vec<(String, String)> = match Verb::find(first).filter(|_| !is_at_verb) {
        None => {
            let mut fits: Vec<&Verb> = VERBS.iter().filter(|verb| verb.name.starts_with(first)).collect();
            // What is done to a call at once comes first, for its moment passes.
            fits.sort_by_key(|verb| verb.waits != Waits::IfNext);
            fits.into_iter().map(|verb| (verb.name.to_owned(), verb.does.to_owned())).collect()
        }
        Some(verb) => {
            let what = |member: &crate::command::verbs::Member| {
                format!("{}: {} ({})", member.means, member.kind.allowed(), member.default)
            };
            verb.members().map(|member| (member.name.to_owned(), what(member))).collect()
        }
    };
    if lines.len() <= room {
        return lines;
    }
    let left = lines.len() - room.saturating_sub(1);
    let shown = lines.into_iter().take(room.saturating_sub(1));
    shown.chain([(String::new(), format!("and {left} more; type to see fewer"))]).collect()
}

/// For the top line: what is held, and what is armed.
pub(super) fn counts(state: &State, ink: &Ink<'_>) -> Vec<Span<'static>> {
    let Some(status) = &state.status else { return Vec::new() };
    let mut spans = Vec::new();
    if !status.held.is_empty() {
        spans.push(ink.span(&format!(" HOLD {} ", status.held.len()), Role::Warn));
    }
    if !status.rules.is_empty() {
        spans.push(ink.span(&format!(" ARMED {} ", status.rules.len()), Role::Midwire));
    }
    spans
}
