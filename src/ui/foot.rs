//! The foot of the screen: about the selected line, the newest note, the keys, the status.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::copy;
use super::detail::Part;
use super::ink::Ink;
use super::paint;
use super::prompt::{Kind, Prompt, Verdict};
use super::session::Column;
use super::state::{Overlay, State, View};
use super::{outcome, units, words};
use crate::config::keys::Action;
use crate::config::theme::Role;
use crate::model::{CallIdx, RowIdx};
use crate::time::Mono;

/// The keys of the messages of an opened call.
const MESSAGE_HINTS: [(Action, &str); 6] = [
    (Action::Down, "next message"),
    (Action::Open, "into it"),
    (Action::Tab, "tree, raw, headers, timing"),
    (Action::Maximise, "whole screen"),
    (Action::Copy, "copy"),
    (Action::Back, "back"),
];

/// The keys of the chosen message.
const BODY_HINTS: [(Action, &str); 7] = [
    (Action::Left, "fold"),
    (Action::Right, "unfold"),
    (Action::Tab, "tree, raw, headers, timing"),
    (Action::Pane, "pane"),
    (Action::Maximise, "whole screen"),
    (Action::Copy, "copy"),
    (Action::Back, "back"),
];

/// The keys that mean something where the keys go now; help and the line of keys are made of them.
pub(super) fn hints(state: &State) -> Vec<(Action, &'static str)> {
    match (state.opened, state.view) {
        (Some(Part::Messages), _) => MESSAGE_HINTS.to_vec(),
        (Some(Part::Body), _) => BODY_HINTS.to_vec(),
        (None, View::Home) => super::home::hints(state),
        (None, View::Calls) => super::calls::HINTS.to_vec(),
        (None, View::Stream) => super::stream::HINTS.to_vec(),
        (None, View::Findings) => super::findings::HINTS.to_vec(),
        (None, View::Hands) => super::hands::HINTS.to_vec(),
    }
}

/// The line of keys, or what is asked.
pub(super) fn keys(state: &State, ink: &Ink<'_>) -> Line<'static> {
    let width = state.size.0;
    if let Some(prompt) = &state.prompt {
        return prompt_line(prompt, width, ink);
    }
    if let Some(question) = question(state) {
        return Line::from(vec![Span::raw(" "), ink.span(&question, Role::Warn)]);
    }
    let mut left = vec![Span::raw(" ")];
    let mut used = 1;
    let help = key_hint(state, Action::Help, "help", ink);
    let help_width: usize = help.iter().map(Span::width).sum();
    for (action, what) in hints(state).into_iter().filter(|(action, _)| *action != Action::Help) {
        let spans = key_hint(state, action, what, ink);
        let cells: usize = spans.iter().map(Span::width).sum();
        if used + cells + help_width > usize::from(width) {
            break;
        }
        used += cells;
        left.extend(spans);
    }
    paint::two_sided(left, help, width, ink)
}

fn key_hint(state: &State, action: Action, what: &str, ink: &Ink<'_>) -> Vec<Span<'static>> {
    let Some(key) = state.keys.keys_of(action).into_iter().next() else { return Vec::new() };
    vec![ink.span(&key, Role::Key), ink.span(&format!(" {what}  "), Role::Muted)]
}

/// What an overlay asks.
fn question(state: &State) -> Option<String> {
    match state.overlay? {
        Overlay::Help(_) => None,
        Overlay::ConfirmQuit => {
            Some("the session lives in this window: y ends it and quits, any other key goes on".to_owned())
        }
        Overlay::CopyMenu => {
            let choices: Vec<String> =
                copy::CHOICES.iter().map(|(key, what)| format!("{key} {what}")).collect();
            Some(format!("copy  {}", choices.join("  ")))
        }
        Overlay::MarkLetter => Some("remember this line under which letter?".to_owned()),
        Overlay::JumpLetter => Some("jump to which letter? ' goes back".to_owned()),
    }
}

fn prompt_line(prompt: &Prompt, width: u16, ink: &Ink<'_>) -> Line<'static> {
    if let (true, Verdict::Invalid { column, why }) = (prompt.is_filter(), prompt.verdict()) {
        let text = format!(" column {column}: {why}");
        return Line::from(Span::styled(ink.charset.fit(&text, usize::from(width)), ink.style(Role::Error)));
    }
    if prompt.is_filter() {
        let text = " enter: in force   tab: mode   esc: back   e.g. state:lost  is:late  dur>500ms";
        return Line::from(ink.span(text, Role::Muted));
    }
    let is_order = prompt.kind() == Kind::Order;
    let mut left = vec![ink.span(if is_order { " x " } else { " :" }, Role::Key)];
    left.extend(typed(prompt, Role::Title, ink));
    let right = match prompt.verdict() {
        Verdict::Empty if is_order => {
            vec![ink.span("an order to the tap; tab completes, and names the selected call ", Role::Muted)]
        }
        Verdict::Valid if is_order => vec![ink.span("enter gives the order ", Role::Ok)],
        Verdict::Empty => vec![ink.span("the name of an action; tab completes ", Role::Muted)],
        Verdict::Valid => {
            let meaning = Action::from_name(prompt.text().trim()).map_or("", Action::meaning);
            vec![ink.span(&format!("{meaning} "), Role::Ok)]
        }
        Verdict::Invalid { why, .. } => {
            vec![Span::styled(ink.charset.fit(&why, usize::from(width / 2)), ink.style(Role::Muted))]
        }
    };
    paint::two_sided(left, right, width, ink)
}

/// The text of a prompt with its cursor.
pub(super) fn typed(prompt: &Prompt, role: Role, ink: &Ink<'_>) -> Vec<Span<'static>> {
    let before: String = prompt.text().chars().take(prompt.cursor()).collect();
    let mut rest = prompt.text().chars().skip(prompt.cursor());
    let under = rest.next().unwrap_or(' ');
    let after: String = rest.collect();
    let cursor = ink.style(role).add_modifier(ratatui::style::Modifier::REVERSED);
    vec![
        ink.span(&before, role),
        Span::styled(ink.charset.clean(&under.to_string()).into_owned(), cursor),
        ink.span(&after, role),
    ]
}

/// The last line: what was said, what is selected, how time is shown.
pub(super) fn status(state: &State, ink: &Ink<'_>) -> Line<'static> {
    let left = match (&state.notice, pending(state)) {
        (_, Some(pending)) => vec![Span::raw(" "), ink.span(&pending, Role::Key)],
        (Some(notice), _) => {
            let role = if notice.is_trouble { Role::Error } else { Role::Midwire };
            vec![Span::raw(" "), ink.span(&notice.text, role)]
        }
        (None, None) => vec![Span::raw(" "), ink.span(&selection(state), Role::Muted)],
    };
    let mut right = Vec::new();
    if let Some(session) = state.session.as_ref().filter(|_| state.view != View::Home) {
        if state.view == View::Calls {
            let zoom = match state.zoom.step_ns {
                Some(step) => format!("{}/col  ", units::span(step)),
                None => "fit  ".to_owned(),
            };
            let (column, is_reverse) = session.sort;
            if (column, is_reverse) != (Column::Time, false) {
                right.push(ink.span(&format!("by {}  ", column.word()), Role::Muted));
            }
            right.push(ink.span(&zoom, Role::Muted));
        }
        if session.reference != Mono(0) {
            right.push(ink.span(&format!("from {}  ", units::moment(session.reference)), Role::Muted));
        }
        let (text, role) =
            if state.is_following { ("follow on ", Role::Ok) } else { ("follow off ", Role::Muted) };
        right.push(ink.span(text, role));
    }
    paint::two_sided(left, right, state.size.0, ink)
}

/// Keys that wait for more.
fn pending(state: &State) -> Option<String> {
    let count = state.pending.count.map(|count| count.to_string());
    let keys: String = state.pending.keys.iter().map(ToString::to_string).collect();
    let text = format!("{}{keys}", count.unwrap_or_default());
    (!text.is_empty()).then(|| format!("{text} …"))
}

/// Where the selection stands.
fn selection(state: &State) -> String {
    if let (View::Stream | View::Calls, Some((pick, place))) = (state.view, state.list()) {
        let Some(session) = &state.session else { return String::new() };
        let row = match state.item() {
            Some(item) if state.view == View::Stream => session.model.row(RowIdx(item)),
            Some(item) => session.model.call(CallIdx(item)).and_then(|call| session.model.row(call.row)),
            None => None,
        };
        let n = row.map_or(String::new(), |row| format!("#{} at {}  ", row.n, units::moment(row.at)));
        return format!("{n}line {} of {}", (place.cursor.at + 1).min(pick.len()), pick.len());
    }
    match (state.view, state.entry()) {
        (View::Home, Some(entry)) => entry.what.clone(),
        _ => String::new(),
    }
}

/// The lines about the selected call, row or finding below the list.
pub(super) fn answer(state: &State, area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    if area.is_empty() {
        return;
    }
    paint::wall(Rect { height: 1, ..area }, ink, frame);
    let lines = match state.view {
        View::Findings => super::findings::answer(state).unwrap_or_default(),
        View::Hands => super::hands::answer(state).unwrap_or_default(),
        _ => about_selection(state, ink).unwrap_or_default(),
    };
    let width = usize::from(area.width).saturating_sub(2);
    for (y, (line, role)) in lines.iter().zip([Role::Title, Role::Muted]).enumerate() {
        let text = Span::styled(format!(" {}", ink.charset.fit(line, width)), ink.style(role));
        frame.render_widget(text, paint::line_at(area, y + 1));
    }
}

fn about_selection(state: &State, ink: &Ink<'_>) -> Option<[String; 2]> {
    let session = state.session.as_ref()?;
    let model = &session.model;
    let item = state.item()?;
    let row = match state.view {
        View::Stream => Some(model.row(RowIdx(item))?),
        _ => None,
    };
    let call = match row {
        Some(row) => row.call,
        None => Some(CallIdx(item)),
    };
    let about_call = call.and_then(|idx| model.call(idx)).map(|call| {
        let target = call.target.map(|name| format!(" {}", model.text(name))).unwrap_or_default();
        let answer = outcome::answer(model, call, session.now());
        [format!("{} {}{target}", call.id, model.text(call.method)), answer]
    });
    match (row, about_call) {
        (None, about) => about,
        (Some(row), Some([name, answer])) => Some([format!("{} of {name}", words::kind(row.kind)), answer]),
        (Some(row), None) => Some([words::kind(row.kind).to_owned(), words::subject(model, row, ink)]),
    }
}

/// The newest note, on as many lines as there are for it.
pub(super) fn caption(state: &State, area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let width = usize::from(area.width).saturating_sub(2);
    let lines = state.caption().unwrap_or_default().lines().take(usize::from(area.height));
    for (y, line) in lines.enumerate() {
        let text = format!("{} {}", ink.glyphs().wall, ink.charset.fit(line, width));
        frame.render_widget(Span::styled(text, ink.style(Role::Midwire)), paint::line_at(area, y));
    }
}
