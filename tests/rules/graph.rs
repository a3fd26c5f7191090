//! Crates use only the layers below them. Nothing is built twice: by `cargo test` after `cargo local`, by `sam build`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use payments_boot::Lookup;
use serde_json::Value;

use crate::tree::in_repository;

/// The folders at the top with the others whose crates theirs may use. What has no row may use everything.
const LAYERS: [(&str, &[&str]); 8] = [
    ("clients", &["clients"]),
    ("shared", &["shared"]),
    ("functions", &["shared"]),
    ("machine", &["machine", "shared", "clients"]),
    ("restore", &["shared"]),
    ("bank", &["functions", "machine", "shared", "clients"]),
    ("lab", &["bank", "machine", "restore", "functions", "shared", "tools"]),
    ("local", &["bank", "machine", "shared", "clients"]),
];

/// The layers that also tests of these folders may use.
const TESTED_OVER: [(&str, &str); 2] = [("functions", "machine"), ("restore", "machine")];

/// Each crate's folder at the top, those of ours that it uses, and whether only its tests do.
fn uses() -> Result<Vec<(String, String, bool)>> {
    let output = Command::new(env!("CARGO"))
        .current_dir(in_repository(""))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let root = metadata["workspace_root"].as_str().context("no root")?;
    let folder = |path: &Value| {
        let inside = path.as_str()?.strip_prefix(root)?.trim_start_matches('/');
        Some(inside.split('/').next()?.to_owned())
    };
    let mut uses = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let own = folder(&package["manifest_path"]).context("a package elsewhere")?;
        for dependency in package["dependencies"].as_array().context("no dependencies")? {
            uses.extend(folder(&dependency["path"]).map(|used| (own.clone(), used, dependency["kind"] == "dev")));
        }
    }
    Ok(uses)
}

#[test]
fn crates_use_only_the_layers_below_them() -> Result<()> {
    let uses = uses()?;
    for (folder, _) in LAYERS.iter().skip(2) {
        assert!(uses.iter().any(|(user, ..)| user == folder), "no crate in {folder} uses another");
    }
    let is_up = |(user, used, is_for_tests): &&(String, String, bool)| {
        let row = LAYERS.iter().find(|(folder, _)| folder == user);
        let is_below = row.is_none_or(|(_, below)| below.contains(&used.as_str()));
        let is_tested_over = *is_for_tests && TESTED_OVER.contains(&(user.as_str(), used.as_str()));
        !is_below && !is_tested_over
    };
    let up: Vec<_> = uses.iter().filter(is_up).collect();
    assert!(up.is_empty(), "crates that use a layer that is not below theirs: {up:?}");
    Ok(())
}

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
         machine/Cargo.toml, or remove them from the tests' crates: {again:#?}"
    );
    Ok(())
}

/// `cargo test --package settle`, for one, builds nothing for itself but `settle` and its tests.
#[test]
fn each_function_has_tests_of_its_own_that_build_nothing_again() -> Result<()> {
    let tests = crates(&["--edges", "normal,build,dev"])?;
    for function in std::fs::read_dir(in_repository("functions"))? {
        let path = function?.path().canonicalize()?;
        assert!(path.join("tests").exists(), "{} has no tests", path.display());
        let package = format!("path+file://{}", path.display());
        let own = crates(&["--edges", "normal,build,dev", "--package", &package])?;
        let again: Vec<_> = own.difference(&tests).collect();
        assert!(again.is_empty(), "{} builds these with other features than cargo test: {again:#?}", path.display());
    }
    Ok(())
}

/// `sam build` builds one function after the other.
#[test]
fn deployed_functions_have_crates_with_the_same_features() -> Result<()> {
    let mut known: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for function in std::fs::read_dir(in_repository("functions"))? {
        let function = function?.file_name().to_string_lossy().into_owned();
        let package =
            format!("path+file://{}", in_repository(&format!("functions/{function}")).canonicalize()?.display());
        let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let tree = crates(&["--edges", "normal,build", "--package", &package, "--features", "aws"]);
        let is_ci = Lookup::environment().text("CI").is_some();
        if tree.as_ref().is_err_and(|error| !is_ci && error.to_string().contains("--offline")) {
            println!("SKIPPED: the crates of deployed functions are not downloaded; run cargo fetch, then this again");
            return Ok(());
        }
        for one in tree? {
            // Our own are built for each function that has them.
            if !one.contains("(/") {
                let version = one.split(' ').take(2).collect::<Vec<_>>().join(" ");
                own.entry(version).or_default().insert(one);
            }
        }
        ensure!(own.len() > 150, "cargo tree names {} crates of {function}", own.len());
        // Parquet makes a zip larger and a cold start longer.
        let has_parquet = own.keys().any(|version| version.starts_with("parquet "));
        ensure!(has_parquet == ["console", "query-account", "seal"].contains(&function.as_str()), "{function}");
        for (version, one) in own {
            let (first, other) = known.entry(version).or_insert_with(|| (function.clone(), one.clone()));
            ensure!(*other == one, "{function} builds {one:?} again, because {first} has {other:?}");
        }
    }
    Ok(())
}

#[test]
fn tests_have_no_profile_of_their_own() -> Result<()> {
    let manifest = std::fs::read_to_string(in_repository("Cargo.toml"))?;
    assert!(!manifest.contains("[profile.test"), "a crate would be built once for cargo local and once for the tests");
    Ok(())
}
