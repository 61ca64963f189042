//! `midwire faults`: what a recipe does, in words.

use std::io::Write as _;

use serde_json::json;

use super::CLEAN;
use super::args::steering::FaultsArgs;
use crate::app::recipe;
use crate::command::json::of_rule;
use crate::report::harmless;

/// Reads a recipe and prints what it arms and expects.
pub(super) fn faults(args: &FaultsArgs) -> anyhow::Result<u8> {
    let recipe = recipe::load(&args.file)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let expectations: Vec<String> = recipe.expectations.iter().map(ToString::to_string).collect();
        let object = json!({
            "seed": recipe.seed.unwrap_or(0),
            "faults": recipe.faults.iter().map(of_rule).collect::<Vec<_>>(),
            "expectations": expectations,
        });
        writeln!(out, "{object}")?;
        return Ok(CLEAN);
    }
    writeln!(out, "seed {}", recipe.seed.unwrap_or(0))?;
    for rule in &recipe.faults {
        writeln!(out, "fault   {}", harmless(&rule.to_string()))?;
    }
    for expectation in &recipe.expectations {
        writeln!(out, "expect  {}", harmless(&expectation.to_string()))?;
    }
    Ok(CLEAN)
}
