//! The filter of an event source mapping: as much of Lambda's event filtering as `template.yaml` uses.
//!
//! Source: *AWS Lambda Developer Guide*, "Control which events Lambda sends to your function". A pattern has nested
//! fields. The value of a field is one of several strings, or begins with a prefix. Every other operator is an error.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A pattern that records must match.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "FilterCriteria")]
pub struct Filter(Vec<(String, Rule)>);

/// The fault of a text that is not a filter pattern.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The text is not JSON.
    #[error("a filter pattern must be JSON")]
    Json(#[source] serde_json::Error),
    /// The pattern has an operator that is not implemented, or none where one is expected.
    #[error("the filter pattern has {found} at {path:?}: only nested objects, strings and `prefix` are implemented")]
    Unsupported {
        /// The position, as field names joined by dots.
        path: String,
        /// The content at this position.
        found: String,
    },
}

/// A pattern in CloudFormation.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct FilterCriteria {
    filters: [Pattern; 1],
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Pattern {
    pattern: String,
}

impl TryFrom<FilterCriteria> for Filter {
    type Error = FilterError;

    fn try_from(FilterCriteria { filters: [Pattern { pattern }] }: FilterCriteria) -> Result<Self, FilterError> {
        Self::parse(&pattern)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Nested(Filter),
    AnyOf(Vec<Test>),
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Equals(String),
    Prefix(String),
}

impl Filter {
    /// Parses a pattern.
    pub fn parse(pattern: &str) -> Result<Self, FilterError> {
        match serde_json::from_str(pattern).map_err(FilterError::Json)? {
            Value::Object(fields) => Self::from_fields(&fields, ""),
            other => Err(unsupported("", &other)),
        }
    }

    fn from_fields(fields: &Map<String, Value>, path: &str) -> Result<Self, FilterError> {
        let rule = |(name, value): (&String, &Value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let rule = match value {
                // An operator of AWS's, and no field of a record.
                _ if name.starts_with('$') => return Err(unsupported(&path, value)),
                Value::Object(fields) => Rule::Nested(Self::from_fields(fields, &path)?),
                Value::Array(tests) if !tests.is_empty() => {
                    Rule::AnyOf(tests.iter().map(|value| test(value, &path)).collect::<Result<_, _>>()?)
                }
                other => return Err(unsupported(&path, other)),
            };
            Ok((name.clone(), rule))
        };
        if fields.is_empty() {
            return Err(unsupported(path, &Value::Object(Map::new())));
        }
        fields.iter().map(rule).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a record matches. `event` is the record as the function would see it.
    pub fn matches(&self, event: &Value) -> bool {
        self.0.iter().all(|(name, rule)| match rule {
            Rule::Nested(filter) => filter.matches(&event[name]),
            Rule::AnyOf(tests) => event[name].as_str().is_some_and(|text| tests.iter().any(|test| test.matches(text))),
        })
    }
}

impl Test {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Equals(value) => text == value,
            Self::Prefix(prefix) => text.starts_with(prefix),
        }
    }
}

fn test(value: &Value, path: &str) -> Result<Test, FilterError> {
    match value {
        Value::String(text) => Ok(Test::Equals(text.clone())),
        Value::Object(operator) if operator.len() == 1 => match operator.get("prefix") {
            Some(Value::String(prefix)) => Ok(Test::Prefix(prefix.clone())),
            _ => Err(unsupported(path, value)),
        },
        _ => Err(unsupported(path, value)),
    }
}

fn unsupported(path: &str, found: &Value) -> FilterError {
    FilterError::Unsupported { path: path.to_owned(), found: found.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_matches_when_every_field_does() {
        let record = json!({
            "eventName": "MODIFY",
            "dynamodb": { "Keys": { "pk": { "S": "ACCT#acc-1" } }, "NewImage": { "status": { "S": "PENDING" } } },
        });
        for (pattern, want) in [
            (r#"{"dynamodb":{"NewImage":{"status":{"S":["PENDING"]}}}}"#, true),
            (r#"{"dynamodb":{"NewImage":{"status":{"S":["SCHEDULED","PENDING"]}}}}"#, true),
            (r#"{"dynamodb":{"NewImage":{"status":{"S":["pending"]}}}}"#, false),
            (r#"{"dynamodb":{"NewImage":{"status":{"N":["PENDING"]}}}}"#, false),
            (r#"{"dynamodb":{"OldImage":{"status":{"S":["PENDING"]}}}}"#, false),
            (r#"{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"ACCT#"}]}}}}"#, true),
            (r#"{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"COUNTS#"}]}}}}"#, false),
            (r#"{"dynamodb":{"Keys":{"pk":{"S":["COUNTS#1",{"prefix":"ACCT#"}]}}}}"#, true),
            (r#"{"eventName":["INSERT"],"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"ACCT#"}]}}}}"#, false),
            (r#"{"eventName":{"S":["MODIFY"]}}"#, false),
        ] {
            assert_eq!(Filter::parse(pattern).unwrap().matches(&record), want, "{pattern}");
        }
    }

    #[test]
    fn an_unsupported_operator_is_an_error_that_names_it() {
        for (pattern, path) in [
            (r#"{"a":[{"suffix":"x"}]}"#, "a"),
            (r#"{"a":[{"equals-ignore-case":"x"}]}"#, "a"),
            (r#"{"a":[{"anything-but":"x"}]}"#, "a"),
            (r#"{"a":[{"exists":true}]}"#, "a"),
            (r#"{"a":{"b":["x",{"numeric":["=",1]}]}}"#, "a.b"),
            (r#"{"a":[{"wildcard":"*x"}]}"#, "a"),
            (r#"{"$or":[{"a":["x"]},{"b":["x"]}]}"#, "$or"),
            (r#"{"a":[{"prefix":{"equals-ignore-case":"x"}}]}"#, "a"),
            (r#"{"a":[{"prefix":"x","suffix":"y"}]}"#, "a"),
            (r#"{"a":[300]}"#, "a"),
            (r#"{"a":[true]}"#, "a"),
            (r#"{"a":[null]}"#, "a"),
            (r#"{"a":[["x"]]}"#, "a"),
            (r#"{"a":[]}"#, "a"),
            (r#"{"a":{}}"#, "a"),
            (r#"{"a":"x"}"#, "a"),
            ("{}", ""),
            (r#""x""#, ""),
        ] {
            let error = Filter::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(&format!("at {path:?}: only")), "{pattern}: {error}");
        }
        let named = Filter::parse(r#"{"a":[{"suffix":"x"}]}"#).unwrap_err().to_string();
        assert!(named.contains(r#"has {"suffix":"x"} at "a""#), "{named}");
        assert!(matches!(Filter::parse(""), Err(FilterError::Json(_))));
    }
}
