//! What the state looks like. Reads only; costs what is on the screen.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::ink::Ink;
use super::layout;
use super::state::{Overlay, State, View};
use super::{calls, findings, foot, hands, help, home, stream, top};
use crate::config::theme::{Role, Theme};

/// Draws the whole screen.
pub fn view(state: &State, theme: &Theme, frame: &mut Frame<'_>) {
    let ink = Ink { theme, charset: state.charset };
    let area = frame.area();
    frame.buffer_mut().set_style(area, ink.style(Role::Text));
    if state.is_too_small() {
        too_small(state, area, &ink, frame);
        return;
    }
    if let Some(Overlay::Help(cursor)) = state.overlay {
        help::draw(state, cursor, area, &ink, frame);
        return;
    }
    let areas = state.areas();
    frame.render_widget(top::header(state, &ink).style(ink.style(Role::Bar)), areas.header);
    frame.render_widget(top::tabs(state, &ink), areas.tabs);
    frame.render_widget(top::filter(state, &ink), areas.filter);
    match (state.view, &state.session) {
        (View::Calls, Some(session)) => {
            calls::draw(state, session, areas.columns, areas.list, &ink, frame);
        }
        (View::Stream, Some(session)) => {
            stream::draw(state, session, areas.columns, areas.list, &ink, frame);
        }
        (View::Findings, Some(session)) => {
            findings::draw(state, session, areas.columns, areas.list, &ink, frame);
        }
        (View::Hands, Some(_)) => hands::draw(state, areas.columns, areas.list, &ink, frame),
        _ => home::draw(state, areas.columns, areas.list, &ink, frame),
    }
    if let Some(session) = state.session.as_ref().filter(|_| !areas.detail.is_empty()) {
        state.detail.draw(session, areas.detail, state.opened, &ink, frame);
    }
    foot::answer(state, areas.answer, &ink, frame);
    foot::caption(state, areas.caption, &ink, frame);
    hands::palette(state, &ink, frame);
    frame.render_widget(foot::keys(state, &ink), areas.hints);
    frame.render_widget(foot::status(state, &ink), areas.status);
}

/// One line that says what is missing.
fn too_small(state: &State, area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let (width, height) = state.size;
    let text = if width < layout::TINY.0 || height < layout::TINY.1 {
        "too small".to_owned()
    } else {
        let (min_width, min_height) = layout::MIN;
        format!("midwire needs {min_width}x{min_height}; this is {width}x{height}")
    };
    let line = Rect { y: area.y + area.height / 2, height: area.height.min(1), ..area };
    frame.render_widget(ink.span(&text, Role::Warn), line);
}
