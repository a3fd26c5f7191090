//! The API's description, `openapi.yaml`, as what answers are held to: each that a test gets has to be
//! in it, with its status, headers and body.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::Reply;

/// The description, ready to be compared with.
#[derive(Debug)]
pub struct Contract {
    document: Value,
    answers: BTreeMap<(String, i64), AnswerSpec>,
}

/// One answer as it is described.
#[derive(Debug)]
struct AnswerSpec {
    /// By name, in lower case: whether it has to be there, and what its value may be.
    headers: BTreeMap<String, (bool, Validator)>,
    /// By media type.
    content: BTreeMap<String, Validator>,
}

static CONTRACT: LazyLock<Result<Contract, String>> =
    LazyLock::new(|| Contract::read().map_err(|error| format!("openapi.yaml: {error:#}")));

impl Contract {
    /// The description, read once.
    ///
    /// # Errors
    /// Where it is not well-formed.
    pub fn get() -> Result<&'static Self> {
        CONTRACT.as_ref().map_err(|error| anyhow!("{error}"))
    }

    fn read() -> Result<Self> {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi.yaml"))?;
        let mut document: Value = serde_yaml_ng::from_str(&text)?;
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

    /// Every operation by its route key, and what answers all else by `$default`.
    ///
    /// # Errors
    /// Where there are no paths.
    pub fn operations(&self) -> Result<Vec<(String, &Value)>> {
        let mut operations = vec![("$default".to_owned(), &self.document["x-default-route"])];
        for (path, item) in object(&self.document["paths"])? {
            let operation = |(method, operation)| (format!("{} {path}", str::to_uppercase(method)), operation);
            let methods = object(item)?.iter().filter(|(name, _)| name.as_str() != "parameters");
            operations.extend(methods.map(|(method, value)| operation((method.as_str(), value))));
        }
        Ok(operations)
    }

    /// The description as JSON, in which answers have no members but those that are described.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The statuses that an operation is described with.
    pub fn statuses<'c>(&'c self, key: &'c str) -> impl Iterator<Item = i64> + 'c {
        self.answers.keys().filter(move |(known, _)| known == key).map(|(_, status)| *status)
    }

    /// What a reference points to; any other value is itself.
    ///
    /// # Errors
    /// Where it points to nothing.
    pub fn resolved<'c>(&'c self, value: &'c Value) -> Result<&'c Value> {
        match value["$ref"].as_str() {
            Some(reference) => {
                let found = reference.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
                found.with_context(|| format!("nothing is at {reference}"))
            }
            None => Ok(value),
        }
    }

    /// What a schema of the description says of values.
    ///
    /// # Errors
    /// Where it is none.
    pub fn validator(&self, schema: &Value) -> Result<Validator> {
        // References are to the root of the document, so its components are put there.
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

    /// Whether the description has this answer to a request with this route key.
    ///
    /// # Errors
    /// Where it has not; the message says what is amiss.
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
                // Said once for all answers.
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

/// Whether a value is one that a schema allows.
///
/// # Errors
/// Where it is not; the message names every place.
pub fn conforms(validator: &Validator, value: &Value) -> Result<()> {
    let faults: Vec<_> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

/// Clients take members that they do not know; tests do not.
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
