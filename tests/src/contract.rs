//! The contract of `openapi.yaml`: every answer that a test gets must be described there, with its status, headers
//! and body.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::ask::Reply;

/// The parsed description.
#[derive(Debug)]
pub struct Contract {
    document: Value,
    answers: BTreeMap<(String, i64), AnswerSpec>,
}

/// One described answer.
#[derive(Debug)]
struct AnswerSpec {
    /// Whether a header is required, and the schema of its value, by its name in lower case.
    headers: BTreeMap<String, (bool, Validator)>,
    /// By media type.
    content: BTreeMap<String, Validator>,
}

static CONTRACT: LazyLock<Result<Contract, String>> =
    LazyLock::new(|| Contract::read().map_err(|error| format!("openapi.yaml: {error:#}")));

impl Contract {
    /// The description, read once.
    pub fn get() -> Result<&'static Self> {
        CONTRACT.as_ref().map_err(|error| anyhow!("{error}"))
    }

    fn read() -> Result<Self> {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi.yaml"))?;
        let mut document: Value = payments_machine::yaml::from_str(&text)?;
        close(&mut document)?;
        let mut contract = Self { document, answers: BTreeMap::new() };
        let mut answers = BTreeMap::new();
        for (key, operation) in contract.operations()? {
            for (status, answer) in object(&operation["responses"])? {
                let spec = contract.answer(contract.resolved(answer)?);
                answers.insert((key.clone(), status.parse()?), spec.with_context(|| format!("{key}: {status}"))?);
            }
        }
        contract.answers = answers;
        Ok(contract)
    }

    /// Every operation by its route key, and that of all other routes as `$default`.
    pub fn operations(&self) -> Result<Vec<(String, &Value)>> {
        let mut operations = vec![("$default".to_owned(), &self.document["x-default-route"])];
        for (path, item) in object(&self.document["paths"])? {
            let operation = |(method, operation)| (format!("{} {path}", str::to_uppercase(method)), operation);
            let methods = object(item)?.iter().filter(|(name, _)| name.as_str() != "parameters");
            operations.extend(methods.map(|(method, value)| operation((method.as_str(), value))));
        }
        Ok(operations)
    }

    /// The description as JSON, changed so that answers have no undescribed members.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The described statuses of an operation.
    pub fn statuses<'c>(&'c self, key: &'c str) -> impl Iterator<Item = i64> + 'c {
        self.answers.keys().filter(move |(known, _)| known == key).map(|(_, status)| *status)
    }

    /// Resolves a reference; returns any other value itself.
    pub fn resolved<'c>(&'c self, value: &'c Value) -> Result<&'c Value> {
        match value["$ref"].as_str() {
            Some(reference) => {
                let found = reference.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
                found.with_context(|| format!("nothing is at {reference}"))
            }
            None => Ok(value),
        }
    }

    /// A validator of a schema in the description.
    pub fn validator(&self, schema: &Value) -> Result<Validator> {
        // References start at the root of the document, so its components are copied there.
        let root = json!({ "components": self.document["components"], "allOf": [schema] });
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&root)
            .map_err(|error| anyhow!("{error}: {schema}"))
    }

    fn answer(&self, answer: &Value) -> Result<AnswerSpec> {
        let mut headers = BTreeMap::new();
        for (name, header) in answer["headers"].as_object().unwrap_or(&Map::new()) {
            let header = self.resolved(header)?;
            let spec = (header["required"] == true, self.validator(&header["schema"])?);
            headers.insert(name.to_lowercase(), spec);
        }
        let mut content = BTreeMap::new();
        for (media_type, body) in object(&answer["content"])? {
            content.insert(media_type.clone(), self.validator(&body["schema"])?);
        }
        Ok(AnswerSpec { headers, content })
    }

    /// Checks that the description has this answer to a request with this route key.
    pub fn check(&self, key: &str, reply: &Reply) -> Result<()> {
        let spec = self.answers.get(&(key.to_owned(), reply.status));
        let spec = spec.with_context(|| format!("openapi.yaml has no such answer to {key}: {reply}"))?;
        spec.check(reply).with_context(|| format!("not what openapi.yaml says of {key}: {reply}"))
    }
}

impl AnswerSpec {
    fn check(&self, reply: &Reply) -> Result<()> {
        let media_type = reply.header("content-type").unwrap_or_default();
        let body = self.content.get(media_type).with_context(|| format!("not a body of {media_type}"))?;
        conforms(body, &reply.body)?;
        for (name, (is_required, _)) in &self.headers {
            ensure!(!is_required || reply.header(name).is_some(), "the header {name} is missing");
        }
        for (name, value) in &reply.headers {
            match (name.as_str(), self.headers.get(name)) {
                ("content-type", _) => {}
                // All answers share one description of this header.
                ("cache-control", _) => ensure!(value == "no-store", "cache-control: {value}"),
                (_, None) => return Err(anyhow!("the header {name} is not described")),
                (_, Some((_, validator))) => {
                    let number =
                        value.parse::<i64>().map(Value::from).ok().filter(|_| !validator.is_valid(&json!(value)));
                    conforms(validator, &number.unwrap_or_else(|| json!(value))).context(name.clone())?;
                }
            }
        }
        Ok(())
    }
}

/// Checks a value against a schema.
pub fn conforms(validator: &Validator, value: &Value) -> Result<()> {
    let faults: Vec<_> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

/// Clients ignore unknown members; tests reject them.
fn close(document: &mut Value) -> Result<()> {
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).context("no schemas")?;
    for schema in schemas.values_mut().filter_map(Value::as_object_mut) {
        if schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    Ok(())
}

fn object(value: &Value) -> Result<&Map<String, Value>> {
    value.as_object().with_context(|| format!("no object: {value}"))
}
