//! A filter as it was typed, asked about the calls and rows of the open session.

use crate::filter;
use crate::model::{CallIdx, CallView, Model, RowIdx, RowView};

/// A filter in force.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// As it was typed.
    pub text: String,
    filter: filter::Filter,
}

impl Filter {
    /// Reads a filter. What is wrong is told with its column, from 1.
    pub(super) fn parse(text: &str) -> Result<Filter, (usize, String)> {
        match filter::Filter::parse(text) {
            Ok(filter) => Ok(Filter { text: text.to_owned(), filter }),
            Err(error) => Err((error.column, error.why)),
        }
    }

    /// The call matches.
    pub(super) fn is_call(&self, model: &Model, call: CallIdx) -> bool {
        model.call(call).is_some_and(|call| self.filter.matches(&CallView { model, call }))
    }

    /// The row matches.
    pub(super) fn is_row(&self, model: &Model, row: RowIdx) -> bool {
        model.row(row).is_some_and(|row| self.filter.matches(&RowView { model, row }))
    }
}
