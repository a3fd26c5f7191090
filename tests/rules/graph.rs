//! `cargo test` finds built what `cargo local` has built: the same crates, with the same features, in the same profile.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::tree::in_repository;

/// The crates that a command builds, each with its features.
fn crates(arguments: &[&str]) -> Result<BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .current_dir(in_repository(""))
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}"])
        .args(arguments)
        .output()?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .map(|line| line.trim_end_matches(" (*)").trim_end().to_owned())
        .collect())
}

#[test]
fn cargo_test_builds_nothing_of_cargo_local_again() -> Result<()> {
    let local = crates(&["--edges", "normal,build", "--package", "payments-local"])?;
    let tests = crates(&["--edges", "normal,build,dev"])?;
    ensure!(local.len() > 250, "cargo tree names {} crates of cargo local", local.len());
    let again: Vec<_> = local.difference(&tests).collect();
    assert!(
        again.is_empty(),
        "cargo test builds these again, because it uses other features than cargo local. Add the features to \
         local/Cargo.toml, or remove them from the tests' crates: {again:#?}"
    );
    Ok(())
}

#[test]
fn tests_have_no_profile_of_their_own() -> Result<()> {
    let manifest = std::fs::read_to_string(in_repository("Cargo.toml"))?;
    assert!(!manifest.contains("[profile.test"), "a crate would be built once for cargo local and once for the tests");
    Ok(())
}
