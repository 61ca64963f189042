//! The recipe file: read once, before a tap starts or a recording is judged.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};

use crate::command::Recipe;
use crate::command::recipe::That;
use crate::rules::catalogue;

/// Reads a recipe; `docs/recipes.md` says what may stand in it.
///
/// # Errors
/// When it cannot be read, or holds what no recipe has; the error names line and column.
pub fn load(path: &Path) -> anyhow::Result<Recipe> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the recipe {file}; give --faults a file as in docs/recipes.md")
    })?;
    parse(&text).map_err(|what| anyhow!("{file}:{what:#}"))
}

fn parse(text: &str) -> anyhow::Result<Recipe> {
    let recipe = Recipe::parse(text)?;
    for expectation in &recipe.expectations {
        let (That::Finding { rule } | That::NoFinding { rule: Some(rule) }) = &expectation.that else {
            continue;
        };
        if catalogue::find(rule).is_none() {
            let (line, column) = (expectation.place.line, expectation.place.column);
            bail!("{line}:{column}: no rule has the id `{rule}`; `midwire rules` lists them");
        }
    }
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::verbs::VERDICTS;
    use crate::model::Verdict;

    #[test]
    fn rules_and_verdicts_are_those_of_checks() {
        assert!(parse("[[expect]]\nthat = 'finding'\nrule = 'CAN-05'").is_ok());
        let error = parse("\n[[expect]]\nthat = 'no-finding'\nrule = 'CAN-5'").unwrap_err().to_string();
        assert!(error.starts_with("2:1: no rule has the id `CAN-5`"), "{error}");
        let all = [
            Verdict::CompleteWon,
            Verdict::CancelWon,
            Verdict::Crossed,
            Verdict::LateResponse,
            Verdict::Unresolved,
        ];
        assert_eq!(all.map(Verdict::as_str), VERDICTS);
    }
}
