//! The fuzz targets on their seeds and on what is easily made of them, with the ordinary
//! toolchain. The fuzzer itself looks further: `fuzz/README.md`.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::fs;
use std::path::Path;

#[expect(unreachable_pub, reason = "a library to the fuzzer, a module here")]
#[path = "../fuzz/src/lib.rs"]
mod targets;

/// Inputs made of each seed.
const VARIANTS: u32 = 48;

/// The files of a folder, in order of their names.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// One small change of an input, the same for the same number: a byte replaced, a part left out,
/// a part told twice, or the end cut off.
fn changed(input: &[u8], number: u32) -> Vec<u8> {
    let mut state = number.wrapping_mul(2_654_435_761);
    let mut below = |limit: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % limit.max(1)
    };
    let (kind, value) = (below(4), u8::try_from(below(256)).unwrap());
    let (from, len) = (below(input.len()), below(32));
    let to = (from + len).min(input.len());
    let mut output = input.to_vec();
    match kind {
        0 if !output.is_empty() => output[from] = value,
        1 => drop(output.drain(from..to)),
        2 => drop(output.splice(from..from, input[from..to].to_vec())),
        _ => output.truncate(from),
    }
    output
}

#[test]
fn every_target_holds_on_its_seeds_and_on_small_changes_of_them() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    for (name, target) in targets::ALL {
        let inputs = files(&seeds.join(name));
        assert!(!inputs.is_empty(), "no seed for {name}");
        for (path, input) in inputs {
            assert!(input.len() < 8 << 10, "{path} is too large for a seed");
            let variants = (0..VARIANTS).map(|number| changed(&input, number));
            for (number, variant) in std::iter::once(input.clone()).chain(variants).enumerate() {
                let held = std::panic::catch_unwind(|| target(&variant));
                assert!(held.is_ok(), "{name}: change {number} of {path}");
            }
        }
    }
}

#[test]
fn every_target_has_its_program_and_seeds_of_its_own() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for (name, _) in targets::ALL {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        let program = fs::read_to_string(fuzz.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("midwire_fuzz::{name}(data)")), "{name}");
    }
    assert_eq!(files(&fuzz.join("fuzz_targets")).len(), targets::ALL.len());
}
