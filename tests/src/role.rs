//! What the template's roles allow, read from the functions' policies.
//!
//! Left out are the permissions that SAM adds to a role (event sources, failure destinations, logs) and the use of
//! encryption keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

/// Something that code does, or that a role allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The action, such as `dynamodb:GetItem`.
    pub action: String,
    /// The resource by its logical id, such as `PaymentsTable` or `HistoryTable/index/due`.
    pub place: String,
    /// The partition keys as IAM writes them: `ACCT#*`. Empty for any.
    pub keys: String,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!("{:<28} {:<30} {}", self.action, self.place, self.keys);
        f.write_str(line.trim_end())
    }
}

/// An action on a resource, with the keys that one statement allows; `None` is any.
#[derive(Debug, Clone)]
struct Grant {
    action: String,
    place: String,
    keys: Option<BTreeSet<String>>,
}

/// The permissions of one function.
#[derive(Debug, Clone, Default)]
pub struct Role {
    grants: Vec<Grant>,
}

impl Role {
    /// Returns every function's role, by package.
    pub fn all(template: &Value) -> Result<BTreeMap<String, Self>> {
        let functions = template["Resources"].as_object().context("no resources")?.iter();
        let functions = functions.filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function");
        let roles = functions.map(|(name, function)| {
            let package = function["Metadata"]["BuildProperties"]["Binary"].as_str().context("no binary")?;
            Ok((package.to_owned(), Self::of(&function["Properties"], template).with_context(|| name.clone())?))
        });
        ensure!(template["Globals"]["Function"]["Policies"].is_null(), "a policy of every function");
        roles.collect()
    }

    fn of(function: &Value, template: &Value) -> Result<Self> {
        ensure!(function["Role"].is_null(), "it has a role from elsewhere");
        let mut grants = Vec::new();
        for policy in listed(&function["Policies"]) {
            for statement in statements_of(policy, template)? {
                grants.extend(granted(statement).with_context(|| statement.to_string())?);
            }
        }
        Ok(Self { grants })
    }

    /// The permissions, each with one pattern of keys.
    pub fn permissions(&self) -> BTreeSet<Permission> {
        let any = BTreeSet::from([String::new()]);
        let each = self.grants.iter().flat_map(|Grant { action, place, keys }| {
            let keys = keys.as_ref().unwrap_or(&any).iter();
            keys.map(|keys| Permission { action: action.clone(), place: place.clone(), keys: keys.clone() })
        });
        each.collect()
    }

    /// Whether one statement allows an action on a resource for all of these partition keys, as `ForAllValues`
    /// requires.
    pub fn allows(&self, action: &str, place: &str, partitions: &[String]) -> bool {
        self.grants.iter().filter(|grant| grant.action == action && grant.place == place).any(|grant| {
            let one_of = |keys: &BTreeSet<String>, partition: &str| keys.iter().any(|key| matches(key, partition));
            grant.keys.as_ref().is_none_or(|keys| partitions.iter().all(|partition| one_of(keys, partition)))
        })
    }
}

/// The statements of a policy, with those of both cases of an `!If`.
fn statements_of<'t>(policy: &'t Value, template: &'t Value) -> Result<Vec<&'t Value>> {
    if let Some([_, one, other]) = policy["!If"].as_array().map(Vec::as_slice) {
        return Ok([statements_of(one, template)?, statements_of(other, template)?].concat());
    }
    let statements = match policy["!Ref"].as_str() {
        Some("AWS::NoValue") => return Ok(Vec::new()),
        Some(id) => &template["Resources"][id]["Properties"]["PolicyDocument"]["Statement"],
        None => &policy["Statement"],
    };
    ensure!(!statements.is_null(), "not a policy with statements: {policy}");
    // The service that encrypts uses a key, not the function.
    let is_key_use = |statement: &Value| listed(&statement["Action"]).iter().all(|action| is_of_kms(action));
    Ok(listed(statements).into_iter().filter(|statement| !is_key_use(statement)).collect())
}

fn is_of_kms(action: &Value) -> bool {
    action.as_str().is_some_and(|action| action.starts_with("kms:"))
}

/// The grants of one statement.
fn granted(statement: &Value) -> Result<Vec<Grant>> {
    let known = ["Sid", "Effect", "Action", "Resource", "Condition"];
    let fields = statement.as_object().context("a statement has fields")?;
    let strange = fields.keys().find(|name| !known.contains(&name.as_str()));
    ensure!(strange.is_none(), "what does {strange:?} mean?");
    ensure!(statement["Effect"] == "Allow", "it allows nothing");
    let keys = keys_of(&statement["Condition"])?;
    let mut places = Vec::new();
    for resource in listed(&statement["Resource"]) {
        places.extend(places_of(resource)?);
    }
    let mut grants = Vec::new();
    for action in listed(&statement["Action"]) {
        let action = action.as_str().filter(|action| !action.contains('*')).context("an action of many")?;
        grants.extend(places.iter().cloned().map(|place| Grant {
            action: action.to_owned(),
            place,
            keys: keys.clone(),
        }));
    }
    ensure!(!grants.is_empty(), "no action or no resource");
    Ok(grants)
}

/// The partition keys that a condition allows, as patterns; `None` without a condition.
fn keys_of(condition: &Value) -> Result<Option<BTreeSet<String>>> {
    let Some(condition) = condition.as_object() else { return Ok(None) };
    let the_only = |fields: &Map<String, Value>| fields.len() == 1;
    let (operator, tested) = condition.iter().next().filter(|_| the_only(condition)).context("one operator")?;
    let like = match operator.as_str() {
        "ForAllValues:StringLike" => true,
        "ForAllValues:StringEquals" => false,
        other => bail!("what does {other} mean?"),
    };
    ensure!(tested.as_object().is_some_and(the_only), "one condition key");
    let keys = listed(&tested["dynamodb:LeadingKeys"]).into_iter().map(|key| {
        let key = key.as_str().context("a key is a text")?;
        ensure!(like || !key.contains('*'), "StringEquals takes {key} as it stands");
        Ok(key.to_owned())
    });
    Some(keys.collect()).transpose()
}

/// The names of a resource: `X` for `!GetAtt X.Arn`, `X/rest` for `!Sub ${X.Arn}/rest`, and those of both cases of an
/// `!If`.
fn places_of(resource: &Value) -> Result<Vec<String>> {
    let unknown = || format!("which resource is {resource}?");
    if let Some([_, one, other]) = resource["!If"].as_array().map(Vec::as_slice) {
        let either = [places_of(one)?, places_of(other)?].concat();
        return Ok(BTreeSet::from_iter(either).into_iter().collect());
    }
    if let Some(attribute) = resource["!GetAtt"].as_str() {
        return Ok(vec![attribute.strip_suffix(".Arn").with_context(unknown)?.to_owned()]);
    }
    let inside = resource["!Sub"].as_str().and_then(|text| text.strip_prefix("${")?.split_once(".Arn}"));
    let (name, rest) = inside.with_context(unknown)?;
    Ok(vec![format!("{name}{rest}")])
}

/// One value, or the values of a list; none for null.
fn listed(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(several) => several.iter().collect(),
        one => vec![one],
    }
}

/// Whether a text matches a pattern of `StringLike`, whose only `*` is at the end.
fn matches(pattern: &str, text: &str) -> bool {
    pattern.strip_suffix('*').map_or(text == pattern, |beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_allows_what_one_statement_allows() -> Result<()> {
        let table = json!({ "!GetAtt": "PaymentsTable.Arn" });
        let only = |keys: Value| json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys } });
        let reads = |keys: Value| json!({ "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": table, "Condition": only(keys) });
        let role = Role::of(
            &json!({ "Policies": [{ "Statement": [reads(json!(["A#*", "B"])), reads(json!("C#*"))] }] }),
            &Value::Null,
        )?;
        for (partitions, allowed) in [
            (&["A#1", "A#2", "B"] as &[&str], true),
            (&["C#1"], true),
            (&["A#1", "C#1"], false),
            (&["B#1"], false),
            (&["X"], false),
        ] {
            let partitions: Vec<String> = partitions.iter().map(|&key| key.to_owned()).collect();
            assert_eq!(role.allows("dynamodb:GetItem", "PaymentsTable", &partitions), allowed, "{partitions:?}");
            assert!(!role.allows("dynamodb:GetItem", "HistoryTable", &partitions));
            assert!(!role.allows("dynamodb:Query", "PaymentsTable", &partitions));
        }
        Ok(())
    }

    #[test]
    fn an_unknown_policy_is_an_error() {
        let policy = |changed: &str, value: Value| {
            let table = json!({ "!GetAtt": "PaymentsTable.Arn" });
            let mut statement = json!({ "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": table });
            statement[changed] = value;
            Role::of(&json!({ "Policies": [{ "Statement": [statement] }] }), &Value::Null)
        };
        assert!(policy("Sid", json!("Reads")).is_ok());
        let equals = json!({ "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": ["A#*"] } });
        for (changed, value) in [
            ("Effect", json!("Deny")),
            ("Action", json!("dynamodb:*")),
            ("NotAction", json!("dynamodb:GetItem")),
            ("Resource", json!("*")),
            ("Condition", json!({ "Null": { "dynamodb:LeadingKeys": "false" } })),
            ("Condition", equals),
        ] {
            assert!(policy(changed, value.clone()).is_err(), "{changed}: {value}");
        }
        assert!(Role::of(&json!({ "Policies": ["AmazonDynamoDBFullAccess"] }), &Value::Null).is_err());
    }
}
