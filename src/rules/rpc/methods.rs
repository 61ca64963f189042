//! Methods that the era does not have (RPC-28).

use std::collections::HashMap;

use crate::event::Dir;
use crate::machine::task;
use crate::model::Name;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::spec::methods::Method;

/// Methods whose answer is remembered. ours: far more than all eras have.
const KNOWN_LIMIT: usize = 1024;

pub(super) fn rules(book: &mut Book) {
    book.rule("RPC-28", &[On::Request, On::Notification], Unknown::default());
}

#[derive(Default)]
struct Unknown {
    /// Whether an era has a method.
    known: HashMap<(Name, Option<Era>), bool>,
}

impl Unknown {
    fn is_known(&mut self, case: &Case<'_>, name: Name) -> bool {
        if let Some(known) = self.known.get(&(name, case.era())) {
            return *known;
        }
        let method = case.model.text(name);
        let known = match case.era() {
            Some(era) => Method::find(method, era).is_some(),
            None => Era::ALL.into_iter().any(|era| Method::find(method, era).is_some()),
        };
        if self.known.len() < KNOWN_LIMIT {
            self.known.insert((name, case.era()), known);
        }
        known
    }
}

impl Look for Unknown {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(name), Some(row)) = (case.message().and_then(|message| message.method), case.row()) else {
            return;
        };
        if self.is_known(case, name) || has_other_extensions(case) {
            return;
        }
        let method = case.model.text(name);
        // Requests of a server are told as RPC-24, methods that the era has removed as VER-12.
        let is_of_other_era = Era::ALL.into_iter().any(|era| Method::find(method, era).is_some());
        if case.is_modern()
            && (is_of_other_era && row.dir == Dir::C2s || case.call().is_some() && row.dir == Dir::S2c)
        {
            return;
        }
        let era = case.era().map_or("any era", Era::as_str);
        out.gather(case, (case.seen.scope, name), |times| {
            format!("{} {}, which {era} does not have", count(times, "message"), short(method))
        });
    }
}

/// An extension that midwire does not know was declared: it may have methods of its own.
fn has_other_extensions(case: &Case<'_>) -> bool {
    let sides = [case.client_capabilities(), case.server_capabilities()];
    sides.into_iter().flatten().any(|declared| {
        let has_experiments = declared.get("experimental").is_some_and(|of| !of.is_empty());
        let extensions = declared.get("extensions").into_iter().flat_map(|of| of.members());
        has_experiments || extensions.into_iter().any(|(id, _)| id != task::EXTENSION)
    })
}
