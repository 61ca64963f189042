//! Prompts of the suite.

use serde_json::{Map, Value, json};

use super::asking::elicit;
use crate::peer::server::core::object;
use crate::peer::server::prompts::{Argument, Prompt};
use crate::peer::server::resources::PNG;

pub(in crate::peer::server) const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "test_simple_prompt",
        description: "One text",
        arguments: &[],
        run: |_, _| Box::pin(async { Ok(messages(&[text("This is a simple prompt for testing.")])) }),
    },
    Prompt {
        name: "test_prompt_with_arguments",
        description: "A text with two arguments in it",
        arguments: &[required("arg1", "First test argument"), required("arg2", "Second test argument")],
        run: |arguments, _| {
            Box::pin(async move {
                let [one, two] = ["arg1", "arg2"].map(|name| value(arguments, name));
                Ok(messages(&[text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]))
            })
        },
    },
    Prompt {
        name: "test_prompt_with_embedded_resource",
        description: "A resource and a text",
        arguments: &[required("resourceUri", "URI of the resource to embed")],
        run: |arguments, _| {
            Box::pin(async move {
                let uri = value(arguments, "resourceUri");
                let content = "Embedded resource content for testing.";
                let resource = json!({ "uri": uri, "mimeType": "text/plain", "text": content });
                let embedded = json!({ "type": "resource", "resource": resource });
                Ok(messages(&[embedded, text("Please process the embedded resource above.")]))
            })
        },
    },
    Prompt {
        name: "test_prompt_with_image",
        description: "An image and a text",
        arguments: &[],
        run: |_, _| {
            Box::pin(async {
                let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
                Ok(messages(&[image, text("Please analyze the image above.")]))
            })
        },
    },
    Prompt {
        name: "test_input_required_result_prompt",
        description: "Asks first",
        arguments: &[],
        run: |_, ctx| {
            Box::pin(async move {
                let question =
                    elicit("user_context", "What context should the prompt use?", "context", "string");
                let answers = ctx.ask(&[question]).await?;
                let context = answers.get("user_context").map(|answer| &answer["content"]["context"]);
                let context = context.and_then(Value::as_str).unwrap_or("none");
                Ok(messages(&[text(&format!("The context is {context}."))]))
            })
        },
    },
];

const fn required(name: &'static str, description: &'static str) -> Argument {
    Argument { name, description, is_required: true, suggest: |_| Vec::new() }
}

fn value<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn messages(contents: &[Value]) -> Map<String, Value> {
    let messages: Vec<Value> =
        contents.iter().map(|content| json!({ "role": "user", "content": content })).collect();
    object(json!({ "messages": messages }))
}
