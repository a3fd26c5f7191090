//! Compares each role with the calls of its function's code: no permission is missing, and none is left over.
//!
//! | side | is read from |
//! |---|---|
//! | calls of a method of the store | `shared/store/src`: `iam/store.rs` |
//! | methods that a function can call | every name that is called in `functions/<function>/src` and in the shared code |
//! | calls beside the store | `iam/beside.yaml` |
//! | requirements of its event source, failure destination and log group | `template.yaml`: `iam/configured.rs` |
//! | permissions of a role | the roles in `template.yaml`: `payments_tests::Role` |
//!
//! The journeys show that the first three miss nothing: in `payments_tests::World` every function calls with its
//! role, which denies the rest. Left out are encryption keys, which `stages.rs` checks.

mod configured;
mod meaning;
mod queues;
pub(crate) mod source;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use payments_http::HttpFunction;
use payments_machine::yaml::from_str;
use payments_store::Store;
use payments_tests::{Ask, Permission, Role, World, template, with_role};
use syn::visit::{self, Visit};

use crate::tree::sources;

/// The code that every function can call. `shared/store` is read by method; the model and the routes call nothing.
const SHARED: [&str; 4] = ["shared/boot/src", "shared/http/src", "shared/queue/src", "shared/sqs/src"];

/// Lists of texts, by two names.
type Table = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The calls beside the store, and their resources.
const BESIDE_THE_STORE: &str = include_str!("iam/beside.yaml");

/// The SQS calls behind `send` of `iam/beside.yaml`.
const SDK_CALLS_IN_THE_QUEUE: [&str; 1] = ["send_message_batch"];

#[test]
fn each_role_allows_what_its_function_can_call_and_nothing_else() -> Result<()> {
    let methods = store::methods(&source::Sources::parse(&parsed("shared/store/src")?))?;
    let template = template()?;
    let (roles, configured) = (Role::all(&template)?, configured::permissions(&template)?);
    // Read once for all functions: it is most of this rule's time, and each fault of the template runs it again.
    let shared = SHARED.map(names).into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let (mut can, mut may) = (String::new(), String::new());
    for (function, role) in &roles {
        let mut needed = callable(function, &methods, &shared)?;
        needed.extend(configured.get(function).cloned().unwrap_or_default());
        write_table(&mut can, function, &needed)?;
        write_table(&mut may, function, &role.permissions())?;
    }
    let functions: BTreeSet<String> = std::fs::read_dir(in_repository("functions"))?
        .map(|folder| Ok(folder?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    assert_eq!(roles.into_keys().collect::<BTreeSet<_>>(), functions, "the functions of the template");
    ensure!(can == may, "roles are not what the code needs:\n{}", difference(&can, &may));
    // Shown by `cargo test -p payments-tests --test rules iam -- --nocapture`.
    println!("{may}");
    Ok(())
}

#[test]
fn only_the_stores_methods_call_dynamodb() -> Result<()> {
    // The schema creates local tables, with a client that is not the functions'.
    for (path, text) in sources("shared/store/src")?.into_iter().filter(|(path, _)| !path.ends_with("schema.rs")) {
        let file = without_tests(syn::parse_file(&text)?);
        assert!(!store::calls_outside_methods(&file), "{} calls DynamoDB outside of Store's methods", path.display());
    }
    for (path, text) in
        [sources("functions")?, sources("shared/http")?, sources("shared/queue")?, sources("shared/sqs")?].concat()
    {
        assert!(!text.contains("aws_sdk_dynamodb::"), "{} calls DynamoDB without the store", path.display());
        assert!(!text.contains("create_tables"), "{} creates tables", path.display());
    }
    Ok(())
}

#[test]
fn the_queue_calls_what_the_table_says() -> Result<()> {
    let kinds = ["send_message", "receive_message", "delete_message", "change_message", "get_queue"];
    let calls = |name: &str| kinds.iter().any(|kind| name.starts_with(kind));
    let called: BTreeSet<String> = names("shared/sqs/src")?.into_iter().filter(|name| calls(name)).collect();
    assert_eq!(called, BTreeSet::from(SDK_CALLS_IN_THE_QUEUE.map(str::to_owned)));
    Ok(())
}

#[tokio::test]
async fn a_function_without_the_permission_is_denied() -> Result<()> {
    let world = World::open().await?;
    let (client, tables) = (world.client().await, &world.environment.tables);
    let day = "2026-11-20".parse()?;
    let reader = Store::new(with_role(&client, HttpFunction::QueryDue.name(), tables)?, tables.clone());
    reader.counters(day, day).await?;
    let other = Store::new(with_role(&client, "settle", tables)?, tables.clone());
    let refused = other.counters(day, day).await.err().context("settle reads counters")?;
    assert!(format!("{:?}", anyhow::Error::new(refused)).contains("the role of settle does not allow"));
    world.send(Ask::get("/counts?from=2026-11-20&to=2026-11-20")).await?;
    world.send(Ask::get("/events")).await?;
    Ok(())
}

/// The permissions that a function's code can need.
fn callable(
    function: &str,
    methods: &BTreeMap<String, BTreeSet<Permission>>,
    shared: &BTreeSet<String>,
) -> Result<BTreeSet<Permission>> {
    let own = names(&format!("functions/{function}/src"))?;
    let of_store = methods.iter().filter(|(method, _)| own.contains(*method) || shared.contains(*method));
    let mut permissions: BTreeSet<Permission> = of_store.flat_map(|(_, permissions)| permissions.clone()).collect();
    let beside: BTreeMap<String, Table> = from_str(BESIDE_THE_STORE)?;
    for (_, calls) in beside["calls"].iter().filter(|(kind, _)| own.contains(*kind)) {
        for action in calls.iter().filter(|(call, _)| own.contains(*call)).flat_map(|(_, actions)| actions) {
            let places = beside["places"].get(function).into_iter().flatten();
            let fitting = places.filter(|(beginning, _)| action.starts_with(*beginning));
            let (_, places) = fitting.max_by_key(|(beginning, _)| beginning.len()).context("no place")?;
            permissions.extend(places.iter().map(|place| Permission {
                action: action.clone(),
                place: place.clone(),
                keys: String::new(),
            }));
        }
    }
    Ok(permissions)
}

/// The names of all methods called in a folder, on any type, and all names in its paths: it may have too many, but
/// misses no call of the store.
fn names(folder: &str) -> Result<BTreeSet<String>> {
    #[derive(Default)]
    struct Names(BTreeSet<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            self.0.insert(call.method.to_string());
            visit::visit_expr_method_call(self, call);
        }
        fn visit_path(&mut self, path: &'ast syn::Path) {
            // `Store::head`, and the types; a variable called `head` is not a call.
            if path.segments.len() > 1
                || path.get_ident().is_some_and(|name| name.to_string().starts_with(char::is_uppercase))
            {
                self.0.extend(path.segments.iter().map(|segment| segment.ident.to_string()));
            }
            visit::visit_path(self, path);
        }
        fn visit_macro(&mut self, called: &'ast syn::Macro) {
            // A macro's content is not parsed: each word after a point counts.
            let tokens = called.tokens.to_string();
            let words = tokens.split('.').skip(1).filter_map(|rest| {
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty())
            });
            self.0.extend(words.map(str::to_owned));
        }
    }
    let mut names = Names::default();
    parsed(folder)?.iter().for_each(|file| names.visit_file(file));
    Ok(names.0)
}

/// The Rust files in a folder, without unit tests.
fn parsed(folder: &str) -> Result<Vec<syn::File>> {
    let files = sources(folder)?.into_iter().filter(|(path, _)| !path.ends_with("tests.rs"));
    files
        .map(|(path, text)| Ok(without_tests(syn::parse_file(&text).with_context(|| path.display().to_string())?)))
        .collect()
}

fn without_tests(mut file: syn::File) -> syn::File {
    file.items.retain(|item| !matches!(item, syn::Item::Mod(module) if module.ident == "tests"));
    file
}

fn write_table(table: &mut String, function: &str, permissions: &BTreeSet<Permission>) -> Result<()> {
    for permission in permissions {
        writeln!(table, "{function:<18} {permission}")?;
    }
    Ok(())
}

/// The lines that only one of the tables has.
fn difference(can: &str, may: &str) -> String {
    let (can, may): (BTreeSet<&str>, BTreeSet<&str>) = (can.lines().collect(), may.lines().collect());
    let missing = can.difference(&may).map(|line| format!("  its role must allow    {line}\n"));
    let left_over = may.difference(&can).map(|line| format!("  its role must not allow {line}\n"));
    missing.chain(left_over).collect()
}

fn in_repository(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)
}
