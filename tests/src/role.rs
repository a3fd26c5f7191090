//! Permissions by the template's roles: those of the functions, to which SAM adds nothing.
//!
//! The use of encryption keys is left out: `rules/stages.rs` checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use publish::BUS_SOURCE;
use serde_json::{Map, Value, json};

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

/// The start of an event bus's ARN, before the parameter that names the bus.
const BUSES: &str = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/${";

/// An action on a resource, with the keys that one statement allows; `None` is any.
#[derive(Debug, Clone)]
struct Grant {
    /// The number of the statement.
    statement: usize,
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
            let role = role_of(&function["Properties"], template).with_context(|| name.clone())?;
            Ok((package.to_owned(), Self::parse(role, template).with_context(|| name.clone())?))
        });
        let global = &template["Globals"]["Function"];
        ensure!(global["Policies"].is_null() && global["Role"].is_null(), "a policy or role of every function");
        roles.collect()
    }

    /// Reads the properties of a role.
    fn parse(role: &Value, template: &Value) -> Result<Self> {
        let known = ["AssumeRolePolicyDocument", "ManagedPolicyArns", "Policies", "Tags"];
        let strange =
            role.as_object().context("a role has properties")?.keys().find(|it| !known.contains(&it.as_str()));
        ensure!(strange.is_none(), "what does {strange:?} mean?");
        let trusted = &role["AssumeRolePolicyDocument"]["Statement"];
        let lambda = json!([{
            "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" }, "Action": "sts:AssumeRole",
        }]);
        ensure!(*trusted == lambda, "not only Lambda may use it: {trusted}");
        let own = listed(&role["Policies"]).into_iter().map(|policy| &policy["PolicyDocument"]["Statement"]);
        let mut statements = own.flat_map(listed).map(in_any_case).collect::<Vec<_>>();
        statements.extend(managed(&role["ManagedPolicyArns"], template)?);
        let mut grants = Vec::new();
        for (number, statement) in statements.into_iter().enumerate().filter(|(_, it)| !is_key_use(it)) {
            grants.extend(granted(number, statement).with_context(|| statement.to_string())?);
        }
        Ok(Self { grants })
    }

    /// The permissions, each with one pattern of keys.
    pub fn permissions(&self) -> BTreeSet<Permission> {
        let any = BTreeSet::from([String::new()]);
        let each = self.grants.iter().flat_map(|Grant { action, place, keys, .. }| {
            let keys = keys.as_ref().unwrap_or(&any).iter();
            keys.map(|keys| Permission { action: action.clone(), place: place.clone(), keys: keys.clone() })
        });
        each.collect()
    }

    /// Whether one statement allows an action on a resource for all of these partition keys, as `ForAllValues`
    /// requires.
    pub fn allows(&self, action: &str, place: &str, partitions: &[String]) -> bool {
        self.allows_together(&[action], place, partitions)
    }

    /// Whether one statement allows all of these actions on a resource, each for all of these partition keys. So it
    /// allows a transaction, however its keys are compared: those of an action, or those of the whole request.
    pub fn allows_together(&self, actions: &[&str], place: &str, partitions: &[String]) -> bool {
        let one_of = |keys: &BTreeSet<String>, partition: &str| keys.iter().any(|key| matches(key, partition));
        let of_keys = |grant: &&Grant| {
            grant.keys.as_ref().is_none_or(|keys| partitions.iter().all(|partition| one_of(keys, partition)))
        };
        let grants = || self.grants.iter().filter(|grant| grant.place == place).filter(of_keys);
        let statements: BTreeSet<usize> = grants().map(|grant| grant.statement).collect();
        statements.into_iter().any(|statement| {
            let is_allowed =
                |action: &str| grants().any(|grant| grant.statement == statement && grant.action == action);
            actions.iter().all(|action| is_allowed(action))
        })
    }
}

/// The statement of an `!If` whose other case is none.
fn in_any_case(statement: &Value) -> &Value {
    match statement["!If"].as_array().map(Vec::as_slice) {
        Some([_, then, otherwise]) if *otherwise == json!({ "!Ref": "AWS::NoValue" }) => then,
        _ => statement,
    }
}

/// The properties of a function's role.
fn role_of<'t>(function: &Value, template: &'t Value) -> Result<&'t Value> {
    // SAM attaches these to the roles that it makes, and ignores them beside another role.
    ensure!(function["Policies"].is_null(), "its policies belong to its role");
    let id = function["Role"]["!GetAtt"].as_str().and_then(|it| it.strip_suffix(".Arn"));
    let id = id.context("SAM makes its role, and attaches policies of its own to it")?;
    let role = &template["Resources"][id];
    ensure!(role["Type"] == "AWS::IAM::Role", "{id} is not a role");
    let others = template["Resources"].as_object().into_iter().flat_map(Map::values);
    let users = others.filter(|other| other["Properties"]["Role"] == function["Role"]);
    ensure!(users.count() == 1, "{id} is another function's, too");
    Ok(&role["Properties"])
}

/// The statements of managed policies, with those of both cases of an `!If`. AWS's own are an error: they allow their
/// actions on every resource.
fn managed<'t>(policies: &'t Value, template: &'t Value) -> Result<Vec<&'t Value>> {
    let mut statements = Vec::new();
    for policy in listed(policies) {
        if let Some([_, one, other]) = policy["!If"].as_array().map(Vec::as_slice) {
            statements.extend(managed(one, template)?);
            statements.extend(managed(other, template)?);
            continue;
        }
        let id = policy["!Ref"].as_str().with_context(|| format!("not a policy of this template: {policy}"))?;
        if id != "AWS::NoValue" {
            let found = &template["Resources"][id]["Properties"]["PolicyDocument"]["Statement"];
            ensure!(!found.is_null(), "not a policy with statements: {policy}");
            statements.extend(listed(found));
        }
    }
    Ok(statements)
}

/// Whether a statement allows only the use of a key. The service that encrypts uses it, not the function.
fn is_key_use(statement: &Value) -> bool {
    let actions = listed(&statement["Action"]);
    !actions.is_empty() && actions.iter().all(|action| is_of_kms(action))
}

fn is_of_kms(action: &Value) -> bool {
    action.as_str().is_some_and(|action| action.starts_with("kms:"))
}

/// The grants of one statement.
fn granted(number: usize, statement: &Value) -> Result<Vec<Grant>> {
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
        ensure!(!places.iter().any(|place| place == "*"), "{action} on every resource");
        grants.extend(places.iter().cloned().map(|place| Grant {
            statement: number,
            action: action.to_owned(),
            place,
            keys: keys.clone(),
        }));
    }
    ensure!(!grants.is_empty(), "no action or no resource");
    Ok(grants)
}

/// The partition keys that a condition allows, as patterns; `None` without a condition, and for the source of events, the folder of
/// a list, and files that must not be there.
fn keys_of(condition: &Value) -> Result<Option<BTreeSet<String>>> {
    let Some(condition) = condition.as_object() else { return Ok(None) };
    let others = [
        json!({ "StringEquals": { "events:source": BUS_SOURCE } }),
        json!({ "StringEquals": { "s3:prefix": "reports/" } }),
        json!({ "Null": { "s3:if-none-match": "false" } }),
    ];
    if others.iter().any(|other| other.as_object() == Some(condition)) {
        return Ok(None);
    }
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

/// The names of a resource: `X` for `!GetAtt X.Arn`, for `!Ref X` and for the event bus that `X` names, `X/rest` for `!Sub ${X.Arn}/rest`, and those of both cases of an
/// `!If`.
fn places_of(resource: &Value) -> Result<Vec<String>> {
    let unknown = || format!("which resource is {resource}?");
    if resource == "*" {
        return Ok(vec!["*".to_owned()]);
    }
    if let Some([_, one, other]) = resource["!If"].as_array().map(Vec::as_slice) {
        let either = [places_of(one)?, places_of(other)?].concat();
        return Ok(BTreeSet::from_iter(either).into_iter().collect());
    }
    // The reference to a secret is its ARN.
    if let Some(secret) = resource["!Ref"].as_str() {
        return Ok(vec![secret.to_owned()]);
    }
    if let Some(attribute) = resource["!GetAtt"].as_str() {
        return Ok(vec![attribute.strip_suffix(".Arn").with_context(unknown)?.to_owned()]);
    }
    if let Some(bus) = resource["!Sub"].as_str().and_then(|text| text.strip_prefix(BUSES)?.strip_suffix('}')) {
        return Ok(vec![bus.to_owned()]);
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
mod tests;
