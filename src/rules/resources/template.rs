//! URI templates (RFC 6570), as far as their grammar goes.

/// What keeps a text from being a template; `None`: it is one.
pub(super) fn fault(template: &str) -> Option<String> {
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (_, from) = rest.split_at(at);
        let Some(inside) = from.strip_prefix('{') else { return Some("has a } without {".to_owned()) };
        let Some((expression, after)) = inside.split_once('}') else {
            return Some("has a { without }".to_owned());
        };
        if let Some(odd) = odd_variable(expression) {
            return Some(format!("has {{{expression}}}, where {odd}"));
        }
        rest = after;
    }
    None
}

/// What is wrong with an expression: an operator, then variables with their modifiers.
fn odd_variable(expression: &str) -> Option<String> {
    let variables = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
    // Operators that are kept for later: what they will mean is not known.
    if variables.starts_with(['=', ',', '!', '@', '|']) {
        return None;
    }
    variables.split(',').find(|variable| !is_variable(variable)).map(|variable| match variable {
        "" => "a variable has no name".to_owned(),
        _ => format!("{variable} is no variable"),
    })
}

fn is_variable(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    let (name, has_length) = match name.split_once(':') {
        Some((name, length)) => {
            let is_length = (1..=4).contains(&length.len())
                && !length.starts_with('0')
                && length.bytes().all(|byte| byte.is_ascii_digit());
            (name, is_length && !text.ends_with('*'))
        }
        None => (name, true),
    };
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'%');
    has_length
        && !name.is_empty()
        && name.split('.').all(|part| !part.is_empty() && part.bytes().all(is_char))
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn templates_are_told_from_what_does_not_parse() {
        for (template, expected) in [
            ("notes://{day}", None),
            ("file:///{+path}", None),
            ("x:{/a*}{?b,c:3}{&d}{#e.f}{;g_h}", None),
            ("x:{path*}", None),
            ("plain:text", None),
            ("x:{%41b}", None),
            ("x:{a", Some("has a { without }")),
            ("x:a}", Some("has a } without {")),
            ("x:{}", Some("has {}, where a variable has no name")),
            ("x:{a,}", Some("has {a,}, where a variable has no name")),
            ("x:{path:path}", Some("has {path:path}, where path:path is no variable")),
            ("x:{a b}", Some("has {a b}, where a b is no variable")),
            ("x:{{a}}", Some("has {{a}, where {a is no variable")),
            ("x:{a:0}", Some("has {a:0}, where a:0 is no variable")),
        ] {
            assert_eq!(fault(template).as_deref(), expected, "{template}");
        }
    }
}
