//! Which handler serves a method.

use super::core::{Answer, Context};
use super::message::{Refusal, Request};
use super::{catalogue, discover, tools};
use crate::spec::era::Era;
use crate::spec::{codes, methods};

/// A method that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Discover,
    ToolsList,
    ToolsCall,
}

impl Method {
    const ALL: [(&str, Method); 3] = [
        (methods::DISCOVER, Method::Discover),
        (methods::TOOLS_LIST, Method::ToolsList),
        (methods::TOOLS_CALL, Method::ToolsCall),
    ];

    /// The method of a request in its era.
    pub(super) fn of(request: &Request, era: Era) -> Result<Method, Refusal> {
        let is_of_era = methods::Method::find(&request.method, era).is_some();
        let found = Method::ALL.into_iter().find(|(name, _)| is_of_era && *name == request.method);
        found.map(|(_, method)| method).ok_or_else(|| {
            let names: Vec<&str> = Method::ALL.iter().map(|(name, _)| *name).collect();
            let text = format!("no method {}; this server has {}", request.method, names.join(", "));
            Refusal::new(Some(&request.id), codes::METHOD_NOT_FOUND, text)
        })
    }

    pub(super) async fn run(self, request: &Request, ctx: &mut Context) -> Answer {
        match self {
            Method::Discover => Ok(discover::discover()),
            Method::ToolsList => catalogue::page(request, ctx, "tools", tools::definitions()),
            Method::ToolsCall => tools::call(request, ctx).await,
        }
    }
}
