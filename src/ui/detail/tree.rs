//! A JSON message as a tree that folds.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

use super::json::{Kind, Node, Shape, shape};
use crate::config::theme::Role;
use crate::ui::ink::Ink;
use crate::ui::text::Charset;

/// Containers with more values than this begin folded.
const FOLD_FROM: usize = 200;

/// Strings whose text is longer than this many bytes, or has several lines, can be unfolded.
const LONG_STRING: usize = 60;

/// Bytes of an unfolded string that are shown; the raw text has the rest.
const STRING_LIMIT: usize = 256 * 1024;

/// One line of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TreeLine {
    /// A value.
    Node(usize),
    /// A line of the text of an unfolded string.
    Text(usize, String),
    /// Where the text stops being JSON.
    Fault(String),
}

/// A message as a tree, with what is folded.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    text: String,
    shape: Shape,
    is_folded: Vec<bool>,
    lines: Vec<TreeLine>,
    width: usize,
    charset: Charset,
}

impl Tree {
    /// Reads a message; strings that unfold are wrapped at `width` cells.
    #[must_use]
    pub(super) fn new(text: String, width: usize, charset: Charset) -> Tree {
        let shape = shape(&text);
        let is_folded = shape
            .nodes
            .iter()
            .map(|node| match node.kind {
                Kind::Object | Kind::Array => node.depth > 0 && node.children > FOLD_FROM,
                Kind::String => true,
                Kind::Number | Kind::Word => false,
            })
            .collect();
        let mut tree = Tree { text, shape, is_folded, lines: Vec::new(), width, charset };
        tree.lay_out();
        tree
    }

    /// How many lines it has as folded now.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Wraps at another width.
    pub(super) fn set_width(&mut self, width: usize) {
        if self.width != width {
            self.width = width;
            self.lay_out();
        }
    }

    /// Folds or unfolds the value of a line. Folding what is already folded, or cannot fold, goes
    /// to the line of the value around it. Returns the line to select.
    pub(super) fn fold(&mut self, line: usize, fold: bool) -> usize {
        let Some(idx) = self.node_of(line) else { return line };
        if fold && (self.is_folded.get(idx) != Some(&false) || !self.can_fold(idx)) {
            return self.line_of(self.parent(idx).unwrap_or(idx)).unwrap_or(line);
        }
        if let Some(is_folded) = self.is_folded.get_mut(idx) {
            *is_folded = fold;
        }
        self.lay_out();
        self.line_of(idx).unwrap_or(line)
    }

    /// Folds what is unfolded and the reverse.
    pub(super) fn toggle(&mut self, line: usize) -> usize {
        let is_open = self.node_of(line).is_some_and(|idx| self.is_folded.get(idx) == Some(&false));
        self.fold(line, is_open)
    }

    /// The JSON Pointer of the value of a line.
    #[must_use]
    pub(super) fn pointer(&self, line: usize) -> Option<String> {
        let mut idx = self.node_of(line)?;
        let mut steps = Vec::new();
        while let Some(parent) = self.parent(idx) {
            let step = match self.node(idx)?.key.clone() {
                Some(key) => unquoted(self.text.get(key)?).replace('~', "~0").replace('/', "~1"),
                None => self.children_before(parent, idx).to_string(),
            };
            steps.push(step);
            idx = parent;
        }
        // The path of the whole is empty, and each step has its slash before it.
        steps.push(String::new());
        steps.reverse();
        Some(steps.join("/"))
    }

    /// The value of a line as it was sent.
    #[must_use]
    pub(super) fn value(&self, line: usize) -> Option<&str> {
        self.text.get(self.node(self.node_of(line)?)?.value.clone())
    }

    /// The member name of a line, without quotation marks.
    #[must_use]
    pub(super) fn key(&self, line: usize) -> Option<&str> {
        self.node(self.node_of(line)?)?.key.clone().and_then(|key| self.text.get(key)).map(unquoted)
    }

    /// Draws one line in at most `width` cells.
    #[must_use]
    pub(super) fn draw(&self, line: usize, width: usize, ink: &Ink<'_>) -> Line<'static> {
        match self.lines.get(line) {
            Some(TreeLine::Node(idx)) => match self.node(*idx) {
                Some(node) => self.draw_node(*idx, node, width, ink),
                None => Line::default(),
            },
            Some(TreeLine::Text(idx, text)) => {
                let indent = self.node(*idx).map_or(0, |node| indent(node.depth + 2, width));
                let text = ink.charset.fit(text, width.saturating_sub(indent));
                Line::from(vec![
                    Span::raw(" ".repeat(indent)),
                    Span::styled(text, ink.style(Role::JsonString)),
                ])
            }
            Some(TreeLine::Fault(text)) => {
                Line::from(Span::styled(ink.charset.fit(text, width), ink.style(Role::Error)))
            }
            None => Line::default(),
        }
    }

    fn draw_node(&self, idx: usize, node: &Node, width: usize, ink: &Ink<'_>) -> Line<'static> {
        let indent = indent(node.depth, width);
        let glyphs = ink.glyphs();
        let is_folded = self.is_folded.get(idx) == Some(&true);
        let sign = match (self.can_fold(idx), is_folded) {
            (false, _) => ' ',
            (true, true) => glyphs.folded,
            (true, false) => glyphs.unfolded,
        };
        let mut spans =
            vec![Span::raw(" ".repeat(indent)), Span::styled(format!("{sign} "), ink.style(Role::Faint))];
        let mut used = indent + 2;
        if let Some(key) = node.key.clone().and_then(|key| self.text.get(key)) {
            let name = ink.charset.fit(unquoted(key), width.saturating_sub(used + 2).min(40));
            used += unicode_width::UnicodeWidthStr::width(name.as_str()) + 2;
            spans.push(Span::styled(name, ink.style(Role::JsonKey)));
            spans.push(Span::styled(": ", ink.style(Role::Faint)));
        }
        let raw = self.text.get(node.value.clone()).unwrap_or_default();
        let left = width.saturating_sub(used);
        let (text, role) = match node.kind {
            Kind::Object => (container(raw, "{", "}", node.children, "member", is_folded), Role::JsonWord),
            Kind::Array => (container(raw, "[", "]", node.children, "item", is_folded), Role::JsonWord),
            Kind::String if !is_folded => {
                (format!("{} bytes of text", raw.len().saturating_sub(2)), Role::Muted)
            }
            Kind::String => (raw.to_owned(), Role::JsonString),
            Kind::Number => (raw.to_owned(), Role::JsonNumber),
            Kind::Word => (raw.to_owned(), Role::JsonWord),
        };
        spans.push(Span::styled(ink.charset.fit(&text, left), ink.style(role)));
        Line::from(spans)
    }

    fn lay_out(&mut self) {
        self.lines.clear();
        let mut idx = 0;
        while let Some(node) = self.shape.nodes.get(idx) {
            self.lines.push(TreeLine::Node(idx));
            let is_folded = self.is_folded.get(idx) == Some(&true);
            if node.kind == Kind::String && !is_folded {
                let raw = self.text.get(node.value.clone()).unwrap_or_default();
                let room = self.width.saturating_sub(indent(node.depth + 2, self.width)).max(10);
                self.lines.extend(
                    wrapped(raw, room, self.charset).into_iter().map(|text| TreeLine::Text(idx, text)),
                );
            }
            idx = if is_folded { node.end } else { idx + 1 };
        }
        if let Some((at, why)) = self.shape.fault {
            self.lines.push(TreeLine::Fault(format!("not JSON from byte {at} on: {why}")));
        }
    }

    fn node(&self, idx: usize) -> Option<&Node> {
        self.shape.nodes.get(idx)
    }

    fn node_of(&self, line: usize) -> Option<usize> {
        match self.lines.get(line)? {
            TreeLine::Node(idx) | TreeLine::Text(idx, _) => Some(*idx),
            TreeLine::Fault(_) => None,
        }
    }

    fn line_of(&self, idx: usize) -> Option<usize> {
        self.lines.iter().position(|line| *line == TreeLine::Node(idx))
    }

    fn parent(&self, idx: usize) -> Option<usize> {
        let depth = self.node(idx)?.depth;
        let before = self.shape.nodes.get(..idx)?;
        before.iter().rposition(|node| node.depth + 1 == depth)
    }

    fn children_before(&self, parent: usize, idx: usize) -> usize {
        let (mut at, mut count) = (parent + 1, 0);
        while at < idx {
            at = self.node(at).map_or(idx, |node| node.end);
            count += 1;
        }
        count
    }

    fn can_fold(&self, idx: usize) -> bool {
        self.node(idx).is_some_and(|node| match node.kind {
            Kind::Object | Kind::Array => node.children > 0,
            Kind::String => {
                let raw = self.text.get(node.value.clone()).unwrap_or_default();
                raw.len() > LONG_STRING || raw.contains("\\n")
            }
            Kind::Number | Kind::Word => false,
        })
    }
}

/// Two cells for each level, and never more than half of the line.
fn indent(depth: usize, width: usize) -> usize {
    (depth * 2).min(width / 2)
}

fn unquoted(key: &str) -> &str {
    key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key)
}

/// `{3 members}` for what is folded, `{` for what is open, `{}` for what is empty.
fn container(raw: &str, begin: &str, end: &str, children: usize, what: &str, is_folded: bool) -> String {
    let tail = if raw.ends_with(end) { end } else { "" };
    match (children, is_folded) {
        (0, _) => format!("{begin}{tail}"),
        (1, true) => format!("{begin} 1 {what} {tail}"),
        (n, true) => format!("{begin} {n} {what}s {tail}"),
        (_, false) => begin.to_owned(),
    }
}

/// The text of a JSON string, unescaped, in lines of at most `width` cells.
fn wrapped(raw: &str, width: usize, set: Charset) -> Vec<String> {
    let parsed: Option<&serde_json::value::RawValue> = serde_json::from_str(raw).ok();
    let text = parsed.and_then(crate::wire::jsonrpc::string).unwrap_or_else(|| unquoted(raw).into());
    let mut lines = Vec::new();
    let mut shown = 0;
    for line in text.split('\n') {
        let (mut out, mut used) = (String::new(), 0);
        for c in set.clean(line).chars() {
            let cells = c.width().unwrap_or(0);
            if used + cells > width {
                lines.push(std::mem::take(&mut out));
                used = 0;
            }
            out.push(c);
            used += cells;
        }
        lines.push(out);
        shown += line.len();
        if shown > STRING_LIMIT {
            lines.push(format!("{} bytes more in the raw text", text.len().saturating_sub(shown)));
            break;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::colour::Depth;
    use crate::config::theme::Theme;

    fn drawn(tree: &Tree) -> Vec<String> {
        let theme = Theme::load("dark", Depth::True).unwrap();
        let ink = Ink { theme: &theme, charset: Charset { is_ascii: true } };
        (0..tree.len()).map(|line| tree.draw(line, 60, &ink).to_string()).collect()
    }

    #[test]
    fn branches_fold_and_unfold() {
        let mut tree = Tree::new(
            r#"{"id":7,"params":{"name":"x","list":[1,{}]}}"#.to_owned(),
            60,
            Charset { is_ascii: true },
        );
        let open = [
            "v {",
            "    id: 7",
            "  v params: {",
            "      name: \"x\"",
            "    v list: [",
            "        1",
            "        {}",
        ];
        assert_eq!(drawn(&tree), open);
        assert_eq!(tree.fold(2, true), 2);
        assert_eq!(drawn(&tree), ["v {", "    id: 7", "  > params: { 2 members }"]);
        assert_eq!(tree.fold(2, true), 0, "folding again goes to the value around it");
        assert_eq!(tree.fold(2, false), 2);
        assert_eq!(drawn(&tree), open);
        assert_eq!(tree.pointer(5).as_deref(), Some("/params/list/0"));
        assert_eq!(tree.pointer(6).as_deref(), Some("/params/list/1"));
        assert_eq!(tree.value(2), Some(r#"{"name":"x","list":[1,{}]}"#));
        assert_eq!(tree.key(3), Some("name"));
    }

    #[test]
    fn a_string_with_lines_unfolds_into_them() {
        let mut tree = Tree::new(r#"["one\ntwo \u001b[2J"]"#.to_owned(), 60, Charset { is_ascii: true });
        assert_eq!(drawn(&tree), ["v [", r#"  > "one\ntwo \u001b[2J""#]);
        tree.toggle(1);
        assert_eq!(drawn(&tree)[2..], ["      one".to_owned(), "      two ^[[2J".to_owned()]);
    }

    #[test]
    fn a_torn_message_shows_where_it_breaks_off() {
        let tree = Tree::new(r#"{"a":[1,"#.to_owned(), 60, Charset { is_ascii: true });
        assert_eq!(
            drawn(&tree),
            ["v {", "  v a: [", "      1", "not JSON from byte 8 on: the text breaks off"]
        );
    }
}
