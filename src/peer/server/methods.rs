//! Which handler serves a method.

use super::core::{Answer, Context};
use super::message::{Refusal, Request};
use super::tasks::of_2025_11_25;
use super::{completion, discover, listen, prompts, resources, tasks, tools};
use crate::spec::era::Era;
use crate::spec::{codes, methods};

/// A method that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Discover,
    ToolsList,
    ToolsCall,
    ResourcesList,
    TemplatesList,
    ResourcesRead,
    PromptsList,
    PromptsGet,
    Complete,
    Listen,
    TasksGet,
    TasksUpdate,
    TasksCancel,
    TasksResult,
    TasksList,
}

impl Method {
    const ALL: [(&str, Method); 15] = [
        (methods::DISCOVER, Method::Discover),
        (methods::TOOLS_LIST, Method::ToolsList),
        (methods::TOOLS_CALL, Method::ToolsCall),
        (methods::RESOURCES_LIST, Method::ResourcesList),
        (methods::TEMPLATES_LIST, Method::TemplatesList),
        (methods::RESOURCES_READ, Method::ResourcesRead),
        (methods::PROMPTS_LIST, Method::PromptsList),
        (methods::PROMPTS_GET, Method::PromptsGet),
        (methods::COMPLETE, Method::Complete),
        (methods::LISTEN, Method::Listen),
        (methods::TASKS_GET, Method::TasksGet),
        (methods::TASKS_UPDATE, Method::TasksUpdate),
        (methods::TASKS_CANCEL, Method::TasksCancel),
        (methods::TASKS_RESULT, Method::TasksResult),
        (methods::TASKS_LIST, Method::TasksList),
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
        let is_modern = ctx.caller().era.is_modern();
        match self {
            Method::Discover => Ok(discover::discover()),
            Method::ToolsList => tools::list(request, ctx),
            Method::ToolsCall => tools::call(request, ctx).await,
            Method::ResourcesList => resources::list(request, ctx),
            Method::TemplatesList => resources::templates(request, ctx),
            Method::ResourcesRead => resources::read(request, ctx).await,
            Method::PromptsList => prompts::list(request, ctx),
            Method::PromptsGet => prompts::get(request, ctx).await,
            Method::Complete => completion::complete(request, ctx),
            Method::Listen => listen::listen(request, ctx).await,
            Method::TasksGet if is_modern => tasks::get(request, ctx),
            Method::TasksCancel if is_modern => tasks::cancel(request, ctx),
            Method::TasksGet => of_2025_11_25::get(request, ctx),
            Method::TasksCancel => of_2025_11_25::cancel(request, ctx),
            Method::TasksResult => of_2025_11_25::result(request, ctx).await,
            Method::TasksList => of_2025_11_25::list(request, ctx),
            Method::TasksUpdate => tasks::update(request, ctx),
        }
    }
}
