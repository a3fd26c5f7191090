//! The law of findings: each result that contradicts its payment is a finding, once, and nothing else is.

use std::collections::BTreeSet;

use payments_machine::layers::attributes::text;
use payments_model::Settlement;
use serde_json::Value;

use crate::facts::heads::{Tables, id_of};

/// A payment's id, and the settlement in words.
type Told = (String, String);

/// Checks the findings against what the transaction service told: results, and the settlements of payments that it was asked for.
/// All of it was received. Returns the violations.
#[must_use]
pub fn check(tables: &Tables, results: &[Value], settlements: &[(String, Settlement)]) -> Vec<String> {
    let told = results.iter().map(|result| (field(result, "paymentId").to_owned(), words_of_result(result)));
    let told = told.chain(settlements.iter().map(|(id, settlement)| (id.clone(), words_of(settlement))));
    let heads = tables.heads();
    let stands: std::collections::BTreeMap<&str, String> =
        heads.iter().map(|(key, head)| (id_of(&key.1), words_of_item(head))).collect();
    // A result of a payment that does not exist is a dead letter.
    let contradicts = |(id, words): &Told| stands.get(id.as_str()).is_some_and(|stands| stands != words);
    let wanted: BTreeSet<Told> = told.filter(contradicts).collect();
    let findings = || tables.history.iter().filter(|((_, sort), _)| sort.starts_with("FINDING#"));
    let found = findings().map(|((partition, _), item)| {
        let id = partition.strip_prefix("FINDINGS#").unwrap_or_default();
        (id.to_owned(), words_of_item(&item["told"]["M"]))
    });
    let found: BTreeSet<Told> = found.collect();
    let missing = wanted.difference(&found).map(|(id, words)| format!("{id} has no finding of {words}"));
    let invented =
        found.difference(&wanted).map(|(id, words)| format!("{id} has a finding of {words}, which nothing told"));
    let marks: BTreeSet<String> = tables
        .history
        .keys()
        .filter(|(partition, _)| partition == "FINDINGS#OPEN")
        .map(|(_, sort)| sort.clone())
        .collect();
    let open = findings().filter(|(_, item)| item.get("closed").is_none()).map(|((partition, sort), _)| {
        let (id, hash) = (partition.strip_prefix("FINDINGS#"), sort.strip_prefix("FINDING#"));
        format!("{}#{}", id.unwrap_or_default(), hash.unwrap_or_default())
    });
    let unmarked = (marks != open.collect()).then(|| format!("the marks of open findings are {marks:?}"));
    missing.chain(invented).chain(unmarked).collect()
}

fn field<'r>(result: &'r Value, name: &str) -> &'r str {
    result[name].as_str().unwrap_or_default()
}

fn words_of_result(result: &Value) -> String {
    match field(result, "status") {
        "PROCESSED" => in_words("PROCESSED", field(result, "transactionId"), "", ""),
        status => {
            let code = result["failureCode"].as_str().unwrap_or("NARR");
            in_words(status, "", code, field(result, "failureReason"))
        }
    }
}

fn words_of(settlement: &Settlement) -> String {
    match settlement {
        Settlement::Processed(id) => in_words("PROCESSED", id.as_str(), "", ""),
        Settlement::Failed(failure) => in_words("FAILED", "", failure.code().as_str(), failure.reason()),
    }
}

fn words_of_item(item: &Value) -> String {
    let [status, id, code, reason] =
        ["status", "transactionId", "failureCode", "failureReason"].map(|name| text(item, name));
    in_words(status, id, code, reason)
}

fn in_words(status: &str, transaction_id: &str, code: &str, reason: &str) -> String {
    [status, transaction_id, code, reason].join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::results::{failed, processed};

    const ID: &str = "626e8292-8e84-575a-b684-0af73927405b";

    fn tables(with_finding: bool, with_mark: bool) -> Tables {
        let mut tables = Tables::default();
        let key = |partition: &str, sort: &str| (partition.to_owned(), sort.to_owned());
        let processed = json!({ "status": { "S": "PROCESSED" }, "transactionId": { "S": "TX-1" } });
        tables.history.insert(key("ACCT#a", &format!("2026-12-01T00:00:00Z#{ID}")), processed);
        if with_finding {
            let told =
                json!({ "status": { "S": "FAILED" }, "failureCode": { "S": "NARR" }, "failureReason": { "S": "no" } });
            tables.history.insert(key(&format!("FINDINGS#{ID}"), "FINDING#1"), json!({ "told": { "M": told } }));
        }
        if with_mark {
            tables.history.insert(key("FINDINGS#OPEN", &format!("{ID}#1")), json!({}));
        }
        tables
    }

    #[test]
    fn findings_equal_the_contradicting_results() {
        let transfer = json!({ "paymentId": ID });
        let own = [(ID.to_owned(), Settlement::Processed("TX-1".parse().unwrap()))];
        let (right, other) = ([processed(&transfer, "TX-1")], [failed(&transfer, "no")]);
        for (tables, results, violations) in [
            (tables(false, false), &right, 0),
            (tables(true, true), &other, 0),
            (tables(false, false), &other, 1),
            (tables(true, true), &right, 1),
            (tables(true, false), &other, 1),
            (tables(false, true), &right, 1),
        ] {
            let found = check(&tables, results, &own);
            assert_eq!(found.len(), violations, "{found:?}");
        }
    }
}
