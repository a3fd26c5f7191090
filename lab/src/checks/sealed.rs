//! The laws of sealed parts: a payment is in one, as the tables show it, not too early, and in the end in one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::{NaiveDate, TimeDelta};
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_machine::Handlers as _;
use payments_machine::invocation::context;
use payments_machine::layers::attributes::{number, text};
use payments_sealed::{PartName, SealedRow, read_all};
use serde_json::{Value, json};

use crate::checks::checker::{Checker, tables};
use crate::checks::cleared::{self, Sealed};
use crate::checks::cleared_again;
use crate::facts::heads::{Tables, due_of, id_of, is_of_head, last_change};
use crate::settings::Settings;
use crate::world::bank::Bank;

/// The field of the versions of a payment that was amended.
const VERSIONS: &str = "versions";

/// A part, with its payments as the API shows them.
struct Part {
    name: PartName,
    rows: Vec<Value>,
}

/// Checks the parts so far against the tables, in a month that seals dates.
///
/// # Errors
/// If a file is not a part.
pub(crate) async fn check(
    bank: &Bank,
    files: &Arc<dyn ObjectStore>,
    tables: &Tables,
    (settings, checker): (&Settings, &mut Checker),
) -> Result<()> {
    let Some((days, clears_after)) = settings.seal_ages() else { return Ok(()) };
    let parts = parts(files).await?;
    let mut found = check_parts(&parts);
    found.extend(check_rows(&parts, tables));
    found.extend(check_age(&parts, last_date(bank, days)?));
    let (payments, days) = (payments(&parts), TimeDelta::days(clears_after.into()));
    found.extend(cleared::check_details(&payments, &heads(tables), tables));
    found.extend(cleared::check_times(&payments, &bank.network.cleared(), (days, tables)));
    // A restore brings back hot heads that had expired.
    if bank.state().restores.is_empty() && !bank.switches.is_restoring() {
        found.extend(check_hot(&parts, tables));
    }
    checker.violations.extend(found.iter().map(|problem| format!("{}: {problem}", bank.time.now().format("%F %T"))));
    Ok(())
}

/// Seals once more when nothing fails, and checks that no payment is missing that ended long enough before, and no old data is left.
/// Returns the first payment of each part, as clients must see it.
///
/// # Errors
/// If the function fails, or a file is not a part.
pub(crate) async fn check_end(
    bank: &Bank,
    files: &Arc<dyn ObjectStore>,
    (settings, checker): (&Settings, &mut Checker),
) -> Result<Vec<Value>> {
    let Some((after, clears_after)) = settings.seal_ages() else {
        return Ok(Vec::new());
    };
    let now = bank.time.now();
    let context = context(now + TimeDelta::minutes(15));
    let sealed = bank.lambda.functions().scheduled("seal", json!({ "action": "seal" }), context).await;
    let tables = tables(bank)?;
    match sealed {
        Ok(outcome) if outcome["sealDiffers"] == 0 => {}
        Ok(outcome) => drop(checker.violations.insert(format!("{now}: rows differ from their payments: {outcome}"))),
        Err(error) => drop(checker.violations.insert(format!("{now}: the last run of seal failed: {error}"))),
    }
    let (last, ended_by) = (last_date(bank, after)?, now - TimeDelta::days(after.into()));
    let lost = bank.state().lost.clone();
    let is_sealed = |head: &Value| {
        let date: Option<NaiveDate> = due_of(head).0.parse().ok();
        date.is_some_and(|date| date <= last) && last_change(head).is_some_and(|at| at < ended_by)
    };
    let parts = parts(files).await?;
    let sealed: BTreeSet<&str> = parts.iter().flat_map(|part| part.rows.iter().map(payment_id)).collect();
    let missing = tables.heads().into_iter().filter(|(_, head)| is_sealed(head)).map(|((_, sk), _)| id_of(sk));
    let missing = missing.filter(|id| !sealed.contains(id) && !lost.contains(*id));
    checker.violations.extend(missing.map(|id| format!("{now}: {id} is in no part")));
    let days = TimeDelta::days(clears_after.into());
    checker.violations.extend(cleared::check_end(&payments(&parts), &heads(&tables), (&tables, days, now)));
    check(bank, files, &tables, (settings, checker)).await?;
    if cleared::not_before(&tables).is_none_or(|until| until <= now) {
        checker.violations.extend(cleared_again::check(bank, &payments(&parts), &tables).await?);
    }
    Ok(parts.into_iter().filter_map(|part| part.rows.into_iter().next()).collect())
}

/// The last date that is old enough.
fn last_date(bank: &Bank, days: u32) -> Result<NaiveDate> {
    let date = bank.tz.date_of(bank.time.now() - TimeDelta::days(days.into())).and_then(|date| date.pred_opt());
    date.context("a date")
}

async fn parts(files: &Arc<dyn ObjectStore>) -> Result<Vec<Part>> {
    let found: Vec<_> = files.list(Some(&Path::from("sealed"))).try_collect().await?;
    let paths: BTreeSet<Path> = found.into_iter().map(|file| file.location).collect();
    let mut parts = Vec::new();
    for path in paths {
        let (part, rows) = read_all(&files.get(&path).await?.bytes().await?).with_context(|| path.to_string())?;
        let rows = rows.iter().map(shown_by).collect::<Result<_>>()?;
        parts.push(Part { name: part.name, rows });
    }
    Ok(parts)
}

/// The payment of a row as the API shows it, with its versions if it was amended.
fn shown_by(row: &SealedRow) -> Result<Value> {
    let mut payment: Value = serde_json::from_str(&row.payment())?;
    if let Some(versions) = row.versions() {
        payment[VERSIONS] = serde_json::from_str::<Value>(versions)?[VERSIONS].take();
    }
    Ok(payment)
}

/// The sealed payments, with their places.
fn payments(parts: &[Part]) -> Vec<Sealed<'_>> {
    parts.iter().flat_map(payments_of).collect()
}

fn payments_of(Part { name, rows }: &Part) -> impl Iterator<Item = Sealed<'_>> {
    let (folder, at) = (format!("{}/{}", name.due_date, name.number), name.sealed_at.as_chrono());
    rows.iter().enumerate().map(move |(number, row)| Sealed { place: format!("{folder}/{number}"), row, at })
}

/// The heads of the long-term table, by payment.
fn heads(tables: &Tables) -> BTreeMap<&str, &Value> {
    let heads = tables.history.iter().filter(|((pk, _), _)| is_of_head(pk));
    heads.map(|((_, sk), head)| (id_of(sk), head)).collect()
}

fn payment_id(row: &Value) -> &str {
    row["paymentId"].as_str().unwrap_or_default()
}

/// A payment is in one part, and the parts of a date have the numbers from 1 on and count the rows before them.
fn check_parts(parts: &[Part]) -> Vec<String> {
    let (mut found, mut sealed) = (Vec::new(), BTreeSet::new());
    let mut dates: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
    for Part { name, rows } in parts {
        let again = rows.iter().map(payment_id).filter(|id| !sealed.insert(*id));
        found.extend(again.map(|id| format!("{id} is in a second part: {name:?}")));
        let (numbers, before) = dates.entry(&name.due_date).or_default();
        if (name.number, name.rows_before) != (*numbers + 1, *before) {
            found.push(format!("{before} rows are in {numbers} parts before {name:?}"));
        }
        *numbers += 1;
        *before += rows.len() as u64;
    }
    found
}

/// A row and the long-term table say the same of a payment that has ended.
fn check_rows(parts: &[Part], tables: &Tables) -> Vec<String> {
    let heads = heads(tables);
    let compared = parts.iter().flat_map(|part| &part.rows).filter_map(|row| {
        let id = payment_id(row);
        let Some(head) = heads.get(id) else { return Some(format!("{id} is sealed and not in the long-term table")) };
        let shown = shown(head);
        let differs = shown.iter().filter(|(name, value)| value_of(row, name) != *value);
        let names: Vec<&str> = differs.map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| format!("{id} has another {} in its part: {row}", names.join(", ")))
    });
    compared.collect()
}

fn value_of(row: &Value, name: &str) -> String {
    match &row[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        number => number.to_string(),
    }
}

/// The fields of a head as the API shows them.
fn shown(head: &Value) -> [(&'static str, String); 9] {
    let (date, at) = due_of(head);
    [
        ("accountId", text(head, "pk").trim_start_matches("ACCT#").to_owned()),
        ("payeeAccountId", text(head, "payeeAccountId").to_owned()),
        ("amountMinor", number(head, "amountMinor").to_string()),
        ("currency", text(head, "currency").to_owned()),
        ("dueDate", date.to_owned()),
        ("dueAt", at.to_owned()),
        ("status", text(head, "status").to_owned()),
        ("version", number(head, "version").to_string()),
        ("transactionId", text(head, "transactionId").to_owned()),
    ]
}

/// No date is sealed before it is old enough.
fn check_age(parts: &[Part], last: NaiveDate) -> Vec<String> {
    let is_early = |part: &&Part| part.name.due_date.parse::<NaiveDate>().map_or(true, |date| date > last);
    parts
        .iter()
        .filter(is_early)
        .map(|part| format!("{last} is the last date to seal, and not {:?}", part.name))
        .collect()
}

/// A sealed payment has left the hot table.
fn check_hot(parts: &[Part], tables: &Tables) -> Vec<String> {
    let hot: BTreeSet<&str> = tables.hot.keys().filter(|(pk, _)| is_of_head(pk)).map(|(_, sk)| id_of(sk)).collect();
    let ids = parts.iter().flat_map(|part| part.rows.iter().map(payment_id));
    ids.filter(|id| hot.contains(id)).map(|id| format!("{id} is sealed and in the hot table")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, rows_before: u64, ids: &[&str]) -> Part {
        let rows = ids.iter().map(|id| json!({ "paymentId": id })).collect();
        Part {
            name: PartName {
                due_date: "2026-03-12".to_owned(),
                number,
                rows_before,
                sealed_at: "2026-05-01T04:10:00Z".parse().unwrap(),
                kept_days: 0,
            },
            rows,
        }
    }

    #[test]
    fn a_payment_is_in_one_part_of_a_whole_sequence() {
        for (second, problems) in
            [(part(2, 1, &["b"]), 0), (part(2, 1, &["a"]), 1), (part(3, 1, &["b"]), 1), (part(2, 2, &["b"]), 1)]
        {
            assert_eq!(check_parts(&[part(1, 0, &["a"]), second]).len(), problems);
        }
    }

    #[test]
    fn a_part_says_what_the_tables_say() {
        let key = ("ACCT#tenant".to_owned(), "2026-03-12T08:00:00Z#a".to_owned());
        let head = json!({
            "pk": { "S": key.0 }, "sk": { "S": key.1 }, "status": { "S": "PROCESSED" }, "version": { "N": "3" },
            "due": { "S": "PROCESSED#2026-03-12#2026-03-12T08:00:00Z#a" }, "amountMinor": { "N": "7" },
            "currency": { "S": "GBP" }, "payeeAccountId": { "S": "payee" }, "transactionId": { "S": "TX" },
        });
        let row = json!({
            "paymentId": "a", "accountId": "tenant", "payeeAccountId": "payee", "amountMinor": 7, "currency": "GBP",
            "dueAt": "2026-03-12T08:00:00Z", "dueDate": "2026-03-12", "status": "PROCESSED", "version": 3,
            "transactionId": "TX",
        });
        let tables = Tables { hot: BTreeMap::new(), history: [(key.clone(), head.clone())].into() };
        let parts = |row: Value| [Part { rows: vec![row], ..part(1, 0, &[]) }];
        assert_eq!(check_rows(&parts(row.clone()), &tables), [""; 0]);
        for (name, _) in shown(&head) {
            let mut other = row.clone();
            other[name] = "other".into();
            assert_eq!(check_rows(&parts(other), &tables).len(), 1, "{name}");
        }
        assert_eq!(check_rows(&[part(1, 0, &["b"])], &tables).len(), 1);
        assert_eq!(check_hot(&parts(row.clone()), &tables), [""; 0]);
        let tables = Tables { hot: [(key, head)].into(), history: BTreeMap::new() };
        assert_eq!(check_hot(&parts(row), &tables).len(), 1);
    }

    #[test]
    fn a_date_is_sealed_when_it_is_old() {
        let of = |last: &str| check_age(&[part(1, 0, &["a"])], last.parse().unwrap()).len();
        assert_eq!([of("2026-03-11"), of("2026-03-12")], [1, 0]);
    }
}
