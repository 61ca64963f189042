//! Methods that the era does not have (RPC-28).

use crate::event::Dir;
use crate::machine::task;
use crate::model::Name;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::spec::methods::Method;
use crate::wire::json::Value;

/// Methods whose answer is remembered. ours: far more than all eras have.
const KNOWN_LIMIT: usize = 1024;

pub(super) fn rules(book: &mut Book) {
    book.rule("RPC-28", &[On::Request, On::Notification], Unknown::default());
}

/// Methods, each looked up once in every era.
#[derive(Default)]
struct Unknown {
    /// By name: whether each era of [`Era::ALL`] has it, and last whether any has.
    known: Vec<[Option<bool>; Era::ALL.len() + 1]>,
}

impl Unknown {
    fn is_known(&mut self, case: &Case<'_>, name: Name) -> bool {
        let method = case.model.text(name);
        let look_up = || match case.era() {
            Some(era) => Method::find(method, era).is_some(),
            None => is_of_some_era(method),
        };
        let (row, column) = (name.0 as usize, case.era().and_then(place).unwrap_or(Era::ALL.len()));
        if row >= KNOWN_LIMIT {
            return look_up();
        }
        if self.known.len() <= row {
            self.known.resize(row + 1, Default::default());
        }
        let known = self.known.get_mut(row).and_then(|eras| eras.get_mut(column));
        known.map_or_else(look_up, |known| *known.get_or_insert_with(look_up))
    }
}

fn place(era: Era) -> Option<usize> {
    Era::ALL.iter().position(|known| *known == era)
}

fn is_of_some_era(method: &str) -> bool {
    Era::ALL.into_iter().any(|era| Method::find(method, era).is_some())
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
        let is_of_other_era = is_of_some_era(method);
        if case.is_modern()
            && (is_of_other_era && row.dir == Dir::C2s || case.call().is_some() && row.dir == Dir::S2c)
        {
            return;
        }
        let era = case.era().map_or("any era", Era::as_str);
        // Beyond the limit they are told together.
        let subject = ((name.0 as usize) < KNOWN_LIMIT).then_some(name);
        out.gather(case, (case.seen.scope, subject), |times| {
            format!("{} of {}, which {era} does not have", count(times, "message"), short(method))
        });
    }
}

/// An extension that midwire does not know was declared: it may have methods of its own.
fn has_other_extensions(case: &Case<'_>) -> bool {
    let sides = [case.client_capabilities(), case.server_capabilities()];
    sides.into_iter().flatten().any(|declared| {
        let has_experiments = declared.get("experimental").is_some_and(|of| !of.is_empty());
        let extensions = declared.get("extensions").into_iter().flat_map(Value::members);
        has_experiments || extensions.into_iter().any(|(id, _)| id != task::EXTENSION)
    })
}
