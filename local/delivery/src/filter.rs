//! Filter criteria of event source mappings.
//!
//! Source: *AWS Lambda Developer Guide*, "Control which events Lambda sends to your function" and
//! "Using event filtering with a DynamoDB event source"; *Amazon EventBridge User Guide*,
//! "Comparison operators for use in event patterns" for the operators. The rules that surprise:
//! - a record passes when any pattern matches, a pattern when all of its fields do;
//! - `exists` knows leaves only, and a leaf below something absent is absent: `exists: false`
//!   matches it, every other test does not;
//! - numbers that are not tested with `numeric` are equal when they are written alike (300 is not
//!   300.0), and a DynamoDB number is a string, which `numeric` never matches;
//! - an array in the event matches when one of its elements does.
//!
//! Written here because the crates at hand fit badly: `quamina` (0.7) knows no `$or` and compares
//! numbers by value; `event-ruler` is an empty placeholder.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// The most patterns of one mapping, after the quota increase that AWS grants.
pub const MAX_PATTERNS: usize = 10;

/// Patterns of which one must match; without any, everything passes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilterCriteria(Vec<Fields>);

/// Why a text is not a filter pattern. AWS says only "Invalid filter pattern definition".
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// Not JSON.
    #[error("a filter pattern is JSON")]
    Json(#[source] serde_json::Error),
    /// JSON that is no pattern.
    #[error("invalid filter pattern definition at {path:?}: {why}")]
    Pattern {
        /// Where, as field names joined by dots.
        path: String,
        /// What is wrong there.
        why: &'static str,
    },
    /// More than [`MAX_PATTERNS`].
    #[error("a mapping has at most {MAX_PATTERNS} filter patterns, not {0}")]
    TooMany(usize),
}

/// An object of a pattern: all of its fields must match, and one of each `$or`.
#[derive(Debug, Clone, PartialEq)]
struct Fields {
    all: Vec<(String, Rule)>,
    or: Vec<Vec<Fields>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Nested(Fields),
    AnyOf(Vec<Test>),
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Equals(Value),
    EqualsIgnoreCase(String),
    Prefix(String),
    Suffix(String),
    AnythingBut(Vec<Value>),
    Numeric(Vec<(Comparison, Number)>),
    Exists(bool),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl FilterCriteria {
    /// Reads patterns, each a JSON text.
    ///
    /// # Errors
    /// [`FilterError`] for what AWS refuses when a mapping is created.
    pub fn parse<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, FilterError> {
        let patterns: Vec<&str> = patterns.into_iter().collect();
        if patterns.len() > MAX_PATTERNS {
            return Err(FilterError::TooMany(patterns.len()));
        }
        let parse = |text: &str| match serde_json::from_str(text).map_err(FilterError::Json)? {
            Value::Object(object) => fields(&object, ""),
            _ => Err(invalid("", "a pattern is an object")),
        };
        patterns.into_iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a record passes. `event` is the record as the function would see it.
    #[must_use]
    pub fn matches(&self, event: &Value) -> bool {
        self.0.is_empty() || self.0.iter().any(|fields| fields.matches(Some(event)))
    }
}

fn invalid(path: &str, why: &'static str) -> FilterError {
    FilterError::Pattern { path: path.to_owned(), why }
}

fn fields(object: &Map<String, Value>, path: &str) -> Result<Fields, FilterError> {
    if object.is_empty() {
        return Err(invalid(path, "an object has at least one field"));
    }
    let mut fields = Fields { all: Vec::new(), or: Vec::new() };
    for (name, value) in object {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if name == "$or" {
            fields.or.push(alternatives(value, &path)?);
        } else {
            fields.all.push((name.clone(), rule(value, &path)?));
        }
    }
    Ok(fields)
}

fn alternatives(value: &Value, path: &str) -> Result<Vec<Fields>, FilterError> {
    let Some(list) = value.as_array().filter(|list| list.len() > 1) else {
        return Err(invalid(path, "$or has at least two alternatives"));
    };
    let alternative = |value: &Value| match value {
        Value::Object(object) => fields(object, path),
        _ => Err(invalid(path, "an alternative is an object")),
    };
    list.iter().map(alternative).collect()
}

fn rule(value: &Value, path: &str) -> Result<Rule, FilterError> {
    match value {
        Value::Object(object) => fields(object, path).map(Rule::Nested),
        Value::Array(tests) if tests.is_empty() => Err(invalid(path, "a list of values has at least one")),
        Value::Array(tests) => tests.iter().map(|value| test(value, path)).collect::<Result<_, _>>().map(Rule::AnyOf),
        _ => Err(invalid(path, "a field is matched by a list of values or by an object")),
    }
}

fn test(value: &Value, path: &str) -> Result<Test, FilterError> {
    let operator = match value {
        Value::Object(object) if object.len() == 1 => object.iter().next(),
        Value::Object(_) => return Err(invalid(path, "a test has exactly one operator")),
        Value::Array(_) => return Err(invalid(path, "a value is not a list")),
        scalar => return Ok(Test::Equals(scalar.clone())),
    };
    match operator.map(|(name, value)| (name.as_str(), value)) {
        Some(("prefix", Value::String(text))) => Ok(Test::Prefix(text.clone())),
        Some(("suffix", Value::String(text))) => Ok(Test::Suffix(text.clone())),
        Some(("equals-ignore-case", Value::String(text))) => Ok(Test::EqualsIgnoreCase(text.clone())),
        Some(("exists", Value::Bool(wanted))) => Ok(Test::Exists(*wanted)),
        Some(("numeric", Value::Array(terms))) => numeric(terms, path),
        Some(("anything-but", value)) => anything_but(value, path),
        _ => Err(invalid(path, "unknown operator, or an operand that it does not take")),
    }
}

fn numeric(terms: &[Value], path: &str) -> Result<Test, FilterError> {
    let pair = |pair: &[Value]| match pair {
        [Value::String(operator), Value::Number(number)] => {
            let comparison = match operator.as_str() {
                "<" => Comparison::Less,
                "<=" => Comparison::LessOrEqual,
                "=" => Comparison::Equal,
                ">=" => Comparison::GreaterOrEqual,
                ">" => Comparison::Greater,
                _ => return Err(invalid(path, "numeric compares with <, <=, =, >= or >")),
            };
            Ok((comparison, number.clone()))
        }
        _ => Err(invalid(path, "numeric takes pairs of an operator and a number")),
    };
    match terms.len() {
        2 | 4 => terms.chunks(2).map(pair).collect::<Result<_, _>>().map(Test::Numeric),
        _ => Err(invalid(path, "numeric takes one or two comparisons")),
    }
}

fn anything_but(value: &Value, path: &str) -> Result<Test, FilterError> {
    let values = match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    };
    let scalars = values.iter().all(|value| value.is_string() || value.is_number());
    if scalars && !values.is_empty() {
        Ok(Test::AnythingBut(values))
    } else {
        Err(invalid(path, "anything-but takes strings or numbers"))
    }
}

impl Fields {
    fn matches(&self, value: Option<&Value>) -> bool {
        let all = self.all.iter().all(|(name, rule)| rule.matches(value.and_then(|value| value.get(name))));
        all && self.or.iter().all(|alternatives| alternatives.iter().any(|fields| fields.matches(value)))
    }
}

impl Rule {
    fn matches(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Nested(fields), Some(Value::Array(elements))) if !elements.is_empty() => {
                elements.iter().any(|element| fields.matches(Some(element)))
            }
            (Self::Nested(fields), value) => fields.matches(value.filter(|value| value.is_object())),
            (Self::AnyOf(tests), value) => {
                let leaves = leaves(value);
                tests.iter().any(|test| test.matches(&leaves))
            }
        }
    }
}

/// The scalars at a path: the value, or those of an array; an object has none of its own.
fn leaves(value: Option<&Value>) -> Vec<&Value> {
    match value {
        None | Some(Value::Object(_)) => Vec::new(),
        Some(Value::Array(elements)) => elements.iter().flat_map(|element| leaves(Some(element))).collect(),
        Some(scalar) => vec![scalar],
    }
}

impl Test {
    fn matches(&self, leaves: &[&Value]) -> bool {
        match self {
            Self::Exists(wanted) => leaves.is_empty() != *wanted,
            _ => leaves.iter().any(|leaf| self.takes(leaf)),
        }
    }

    fn takes(&self, leaf: &Value) -> bool {
        let text = leaf.as_str();
        match self {
            Self::Equals(value) => leaf == value,
            Self::EqualsIgnoreCase(value) => text.is_some_and(|text| text.to_lowercase() == value.to_lowercase()),
            Self::Prefix(prefix) => text.is_some_and(|text| text.starts_with(prefix)),
            Self::Suffix(suffix) => text.is_some_and(|text| text.ends_with(suffix)),
            Self::AnythingBut(values) => !values.contains(leaf),
            Self::Numeric(comparisons) => comparisons.iter().all(|(comparison, bound)| {
                leaf.as_f64()
                    .zip(bound.as_f64())
                    .and_then(|(leaf, bound)| leaf.partial_cmp(&bound))
                    .is_some_and(|ordering| comparison.allows(ordering))
            }),
            Self::Exists(wanted) => *wanted,
        }
    }
}

impl Comparison {
    fn allows(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Equal => ordering.is_eq(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Greater => ordering.is_gt(),
        }
    }
}

#[cfg(test)]
mod tests;
