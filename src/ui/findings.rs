//! Findings: what is wrong. The moment for it: "who is right?"

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ink::Ink;
use super::paint::{self, Scroll};
use super::session::Session;
use super::state::State;
use crate::config::keys::Action;
use crate::config::theme::Role;
use crate::rules::{Finding, Severity};

/// The keys that mean something in the list.
pub(super) const HINTS: [(Action, &str); 3] =
    [(Action::Open, "the call or row that shows it"), (Action::Down, "down"), (Action::Up, "up")];

const SEVERITY: usize = 10;
const RULE: usize = 9;
const BLAME: usize = 14;

/// Draws the list.
pub(super) fn draw(
    state: &State,
    session: &Session,
    columns: Rect,
    list: Rect,
    ink: &Ink<'_>,
    frame: &mut Frame<'_>,
) {
    let set = ink.charset;
    let names = [
        set.pad(" weight", SEVERITY + 1),
        set.pad("rule", RULE),
        set.pad("at fault", BLAME),
        "what happened".to_owned(),
    ];
    frame.render_widget(Span::styled(names.concat(), ink.style(Role::Muted)), columns);
    let findings = session.findings();
    if findings.is_empty() {
        frame.render_widget(ink.span(" nothing wrong has been seen so far", Role::Muted), list);
    }
    for (y, line) in state.findings.visible(findings.len(), usize::from(list.height)).enumerate() {
        let Some(finding) = findings.get(line) else { continue };
        let drawn = draw_line(finding, usize::from(list.width), ink);
        paint::item(drawn, paint::line_at(list, y), line == state.findings.at, true, ink, frame);
    }
    paint::scroll_bar(list, Scroll { top: state.findings.top, len: findings.len() }, ink, frame);
}

fn draw_line(finding: &Finding, width: usize, ink: &Ink<'_>) -> Line<'static> {
    let set = ink.charset;
    let (word, role) = weight(finding.severity);
    let rest = width.saturating_sub(2 + SEVERITY + RULE + BLAME);
    // A consequence hangs under its cause.
    let sentence = match finding.cause {
        Some(_) => format!("  follows: {}", finding.sentence),
        None => finding.sentence.clone(),
    };
    Line::from(vec![
        Span::styled(set.pad(word, SEVERITY), ink.style(role)),
        Span::styled(set.pad(finding.rule, RULE), ink.style(Role::Key)),
        Span::styled(set.pad(finding.blame.as_str(), BLAME), ink.style(Role::Muted)),
        Span::styled(set.fit(&sentence, rest), ink.style(Role::Text)),
    ])
}

/// The weight of a finding in a word, and how it looks.
fn weight(severity: Severity) -> (&'static str, Role) {
    match severity {
        Severity::Error => ("ERROR", Role::Error),
        Severity::Warning => ("WARN", Role::Warn),
        Severity::Hint => ("HINT", Role::Muted),
    }
}

/// What to tell below the list about the selected finding: what happened, and what to do.
pub(super) fn answer(state: &State) -> Option<[String; 2]> {
    let finding = state.finding()?;
    let events: Vec<String> = finding.evidence.iter().take(6).map(|n| format!("#{n}")).collect();
    Some([finding.sentence.clone(), format!("do: {}   see {}", finding.remedy, events.join(" "))])
}
