//! Calls of each method of the store, read from its source: the action, the table or index, and the partition keys.
//!
//! A call is a chain of the SDK's builders that begins at `self.client`, or at `Update::builder()` and the like for
//! an action of a transaction. Its table and key are followed through variables, through functions that make keys,
//! and from a method's arguments to its callers, to `self.tables.…` and to a function of `key.rs`. Nothing is
//! guessed: a chain with an unknown table or key fails the test.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use payments_tests::Permission;
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall};

use super::meaning::Meaning;
use super::source::{Function, Sources};

/// One call of DynamoDB.
#[derive(Debug, Clone)]
struct Call {
    action: String,
    table: Meaning,
    index: Option<String>,
    key: Meaning,
    /// Whether it is an action of a transaction.
    is_in_transaction: bool,
}

/// The permissions that the public methods of the store need, by name.
pub(super) fn methods(sources: &Sources) -> Result<BTreeMap<String, BTreeSet<Permission>>> {
    let public = sources.methods.iter().filter(|(_, method)| method.is_public);
    let permissions = public.map(|(name, _)| {
        let mut calls = calls_of(sources, name).with_context(|| format!("Store::{name}"))?;
        share_keys(&mut calls);
        let mut permissions = BTreeSet::new();
        for call in calls {
            permissions.extend(permissions_of(&call).with_context(|| format!("Store::{name}: {call:?}"))?);
        }
        Ok((name.clone(), permissions))
    });
    permissions.collect()
}

/// Gives each action of a transaction the keys of all of its actions, also of those on other tables. Nothing says whether a
/// condition compares the keys of one action or those of the whole request, so the statements on each table must allow all.
fn share_keys(calls: &mut [Call]) {
    let of_transaction = || calls.iter().filter(|call| call.is_in_transaction);
    let shared: BTreeSet<String> = of_transaction().flat_map(|call| call.key.keys.iter().cloned()).collect();
    for call in calls.iter_mut().filter(|call| call.is_in_transaction) {
        call.key.keys.extend(shared.iter().cloned());
    }
}

fn permissions_of(call: &Call) -> Result<Vec<Permission>> {
    ensure!(!call.table.tables.is_empty(), "which table?");
    // The leading key of an index is its own: a shard's number, or a transaction's id.
    let any = BTreeSet::from([String::new()]);
    // Nor do these have a key.
    let is_of_table = ["Scan", "DescribeTable"].contains(&call.action.as_str());
    let keys = if call.index.is_some() || is_of_table { &any } else { &call.key.keys };
    ensure!(!keys.is_empty(), "which partition keys?");
    let mut permissions = Vec::new();
    for table in &call.table.tables {
        let table = match table.as_str() {
            "payments" => "PaymentsTable",
            "history" => "HistoryTable",
            "log" => "LogTable",
            other => bail!("which table is {other}?"),
        };
        let place = call.index.as_ref().map_or(table.to_owned(), |index| format!("{table}/index/{index}"));
        let action = format!("dynamodb:{}", call.action);
        permissions.extend(keys.iter().map(|keys| Permission {
            action: action.clone(),
            place: place.clone(),
            keys: keys.clone(),
        }));
    }
    Ok(permissions)
}

/// The calls of a method and of those it calls.
fn calls_of(sources: &Sources, name: &str) -> Result<Vec<Call>> {
    let method = sources.methods.get(name).with_context(|| format!("no method {name}"))?;
    let mut chains = Chains { sources, method, calls: Vec::new(), fault: None };
    chains.visit_block(&method.body);
    match chains.fault {
        None => Ok(chains.calls),
        Some(fault) => Err(fault),
    }
}

/// Finds the chains in a method's body.
struct Chains<'s> {
    sources: &'s Sources,
    method: &'s Function,
    calls: Vec<Call>,
    fault: Option<anyhow::Error>,
}

impl<'ast> Visit<'ast> for Chains<'_> {
    fn visit_expr_method_call(&mut self, last: &'ast ExprMethodCall) {
        let mut links = vec![last];
        let mut root = &*last.receiver;
        while let Expr::MethodCall(link) = root {
            links.insert(0, link);
            root = &link.receiver;
        }
        if let Err(fault) = self.enter(root, &links) {
            self.fault.get_or_insert(fault);
        }
        self.visit_expr(root);
        links.iter().flat_map(|link| &link.args).for_each(|argument| self.visit_expr(argument));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        match super::source::arguments_of(called) {
            Some(arguments) => arguments.iter().for_each(|argument| Chains::visit_expr(self, argument)),
            None if called.tokens.to_string().contains("self") => {
                let fault = anyhow::anyhow!("what is called in {}?", called.tokens);
                self.fault.get_or_insert(fault);
            }
            None => {}
        }
    }
}

impl Chains<'_> {
    fn enter(&mut self, root: &Expr, links: &[&ExprMethodCall]) -> Result<()> {
        let first = links[0].method.to_string();
        match root {
            Expr::Path(path) if path.path.is_ident("self") => {
                let arguments: Vec<Meaning> = links[0].args.iter().map(|it| self.meaning(it)).collect();
                for call in calls_of(self.sources, &first)? {
                    let (table, key) = (call.table.given(&arguments), call.key.given(&arguments));
                    self.calls.push(Call { table, key, ..call });
                }
            }
            // A transaction requires what its actions require, which are chains of their own.
            Expr::Field(field) if is_client(&field.member) && first != "transact_write_items" => {
                self.calls.push(self.call(&camel_case(&first), &links[1..])?);
            }
            Expr::Call(builder) => {
                if let Some(action) = action_of_builder(&builder.func) {
                    let call = self.call(action, links)?;
                    self.calls.push(Call { is_in_transaction: true, ..call });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The call that a chain makes.
    fn call(&self, action: &str, links: &[&ExprMethodCall]) -> Result<Call> {
        let named = |name: &str| links.iter().filter(|link| link.method == name).collect::<Vec<_>>();
        let (table, key) = (Meaning::default(), Meaning::default());
        let mut call = Call { action: action.to_owned(), table, index: None, key, is_in_transaction: false };
        for link in named("table_name") {
            call.table.add(self.meaning(&link.args[0]));
        }
        for link in ["set_key", "key", "set_item", "item"].into_iter().flat_map(named) {
            link.args.iter().for_each(|argument| call.key.add(self.meaning(argument)));
        }
        for link in named("request_items") {
            call.table.add(self.meaning(&link.args[0]));
            call.key.add(self.meaning(&link.args[1]));
        }
        for link in named("index_name") {
            call.index = Some(self.sources.index(&link.args[0])?);
        }
        if let (None, Some(condition)) = (&call.index, named("key_condition_expression").first()) {
            let condition = super::source::text_of(&condition.args[0]).context("a condition that is not a literal")?;
            let value = condition.strip_prefix("pk = ").and_then(|rest| rest.split(' ').next());
            let value = value.with_context(|| format!("which partition does {condition:?} mean?"))?;
            let values = named("expression_attribute_values").into_iter();
            let of_key = values.filter(|link| super::source::text_of(&link.args[0]).as_deref() == Some(value));
            of_key.for_each(|link| call.key.add(self.meaning(&link.args[1])));
        }
        Ok(call)
    }

    fn meaning(&self, expression: &Expr) -> Meaning {
        self.sources.meaning(self.method, expression)
    }
}

fn is_client(member: &syn::Member) -> bool {
    matches!(member, syn::Member::Named(name) if name == "client")
}

/// The action that a transaction's item requires.
fn action_of_builder(function: &Expr) -> Option<&'static str> {
    let Expr::Path(path) = function else { return None };
    let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [.., "Put", "builder"] => Some("PutItem"),
        [.., "Update", "builder"] => Some("UpdateItem"),
        [.., "Delete", "builder"] => Some("DeleteItem"),
        [.., "ConditionCheck", "builder"] => Some("ConditionCheckItem"),
        _ => None,
    }
}

/// `GetItem` for `get_item`.
fn camel_case(name: &str) -> String {
    let words = name.split('_').map(|word| word.split_at(word.len().min(1)));
    words.map(|(first, rest)| first.to_uppercase() + rest).collect()
}

/// Whether anything in a file but the store's methods calls DynamoDB.
pub(super) fn calls_outside_methods(file: &syn::File) -> bool {
    struct Finds(bool);
    impl<'ast> Visit<'ast> for Finds {
        fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
            if !super::source::is_of_store(item) {
                visit::visit_item_impl(self, item);
            }
        }
        fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
            self.0 |= action_of_builder(&call.func).is_some();
            visit::visit_expr_call(self, call);
        }
        fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
            self.0 |= call.method == "send";
            visit::visit_expr_method_call(self, call);
        }
    }
    let mut finds = Finds(false);
    finds.visit_file(file);
    finds.0
}
