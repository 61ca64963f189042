//! Draws the pane of an opened call or row.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::body::message_line;
use super::{Detail, Part, Subject, Tab};
use crate::config::theme::Role;
use crate::ui::ink::Ink;
use crate::ui::layout::DetailAreas;
use crate::ui::outcome::{self, Outcome};
use crate::ui::paint::{self, Scroll};
use crate::ui::session::Session;
use crate::ui::words;

impl Detail {
    /// The areas inside `area`.
    #[must_use]
    pub(crate) fn areas(&self, area: Rect) -> DetailAreas {
        DetailAreas::of(area, self.rows.len())
    }

    /// Draws everything; `focus`: the part that answers the keys, if any does.
    pub(crate) fn draw(
        &self,
        session: &Session,
        area: Rect,
        focus: Option<Part>,
        ink: &Ink<'_>,
        frame: &mut Frame<'_>,
    ) {
        let areas = self.areas(area);
        frame.render_widget(self.title(session, areas.title, focus.is_some(), ink), areas.title);
        frame.render_widget(self.answer(session, areas.answer, ink), areas.answer);
        self.draw_messages(session, areas.messages, focus == Some(Part::Messages), ink, frame);
        paint::wall(areas.wall, ink, frame);
        self.draw_body(session, areas.body, focus == Some(Part::Body), ink, frame);
    }

    fn title(&self, session: &Session, area: Rect, has_focus: bool, ink: &Ink<'_>) -> Line<'static> {
        let mut spans =
            vec![Span::styled(ink.glyphs().rule.to_string(), ink.style(Role::Faint)), Span::raw(" ")];
        let name = match self.subject {
            Some(Subject::Call(idx)) => match session.model.call(idx) {
                Some(call) => {
                    let outcome = Outcome::of(call);
                    let glyph = (outcome.glyph)(&ink.glyphs().outcome);
                    spans.push(Span::styled(format!("{glyph} {} ", outcome.word), ink.style(outcome.role)));
                    let target = call.target.map_or("", |name| session.model.text(name));
                    format!("{} {} {}", call.id, session.model.text(call.method), target)
                }
                None => String::new(),
            },
            Some(Subject::Row(idx)) => match session.model.row(idx) {
                Some(row) => format!(
                    "#{} {} {}",
                    row.n,
                    words::kind(row.kind),
                    words::subject(&session.model, row, ink)
                ),
                None => String::new(),
            },
            None => "nothing is selected".to_owned(),
        };
        let tabs: usize = Tab::ALL.iter().map(|tab| tab.name().len() + 3).sum();
        let room = usize::from(area.width).saturating_sub(tabs + 14);
        let role = if has_focus { Role::Title } else { Role::Text };
        spans.push(Span::styled(ink.charset.fit(&name, room), ink.style(role)));
        spans.push(Span::raw("  "));
        for tab in Tab::ALL {
            let (text, role) = if tab == self.tab {
                (format!("[{}]", tab.name()), Role::Key)
            } else {
                (format!(" {} ", tab.name()), Role::Muted)
            };
            spans.push(Span::styled(text, ink.style(role)));
            spans.push(Span::raw(" "));
        }
        paint::with_rule(spans, area.width, ink)
    }

    fn answer(&self, session: &Session, area: Rect, ink: &Ink<'_>) -> Line<'static> {
        let width = usize::from(area.width).saturating_sub(2);
        let call = match self.subject {
            Some(Subject::Call(idx)) => session.model.call(idx),
            Some(Subject::Row(row)) => {
                session.model.row(row).and_then(|row| row.call).and_then(|idx| session.model.call(idx))
            }
            None => None,
        };
        let text = match call {
            Some(call) => outcome::answer(&session.model, call, session.now()),
            None if self.subject.is_some() => "belongs to no call".to_owned(),
            None => String::new(),
        };
        Line::from(vec![Span::raw("  "), Span::styled(ink.charset.fit(&text, width), ink.style(Role::Text))])
    }

    fn draw_messages(
        &self,
        session: &Session,
        area: Rect,
        has_focus: bool,
        ink: &Ink<'_>,
        frame: &mut Frame<'_>,
    ) {
        let height = usize::from(area.height);
        let width = usize::from(area.width).saturating_sub(2);
        for (y, line) in self.messages.visible(self.rows.len(), height).enumerate() {
            let Some(row) = self.rows.get(line).and_then(|idx| session.model.row(*idx)) else { continue };
            let at = paint::line_at(area, y);
            let drawn = message_line(session, row, width, ink);
            paint::item(drawn, at, line == self.messages.at, has_focus, ink, frame);
        }
        let scroll = Scroll { top: self.messages.top, len: self.rows.len() };
        paint::scroll_bar(area, scroll, ink, frame);
    }

    fn draw_body(
        &self,
        session: &Session,
        area: Rect,
        has_focus: bool,
        ink: &Ink<'_>,
        frame: &mut Frame<'_>,
    ) {
        let height = usize::from(area.height);
        let width = usize::from(area.width).saturating_sub(1);
        let len = self.body_len(session);
        for (y, line) in self.body.visible(len, height).enumerate() {
            let drawn = self.body_line(session, line, width, ink);
            paint::plain(drawn, paint::line_at(area, y), line == self.body.at && has_focus, ink, frame);
        }
        paint::scroll_bar(area, Scroll { top: self.body.top, len }, ink, frame);
    }
}
