//! JSON bodies: strict reading, with a problem for each fault.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::echo::echoed;
use crate::pointer::Pointer;
use crate::problem::{MAX_ERRORS, Problem, ProblemKind};

/// The fields of a JSON object, and their faults. Each field is taken once; [`Fields::end`] finds those that were not.
#[derive(Debug)]
pub struct Fields<'b> {
    left: Vec<(String, &'b RawValue)>,
    faults: Vec<Problem>,
}

/// JSON's grammar permits only these names that are not valid text.
const HALF_A_NAME: &str =
    "The name of a field has half of a surrogate pair, such as \\ud800, which is not a character; remove the field.";

/// An object's fields, in their order and with repetitions.
struct Object<'b>(Vec<(&'b RawValue, &'b RawValue)>);

impl<'de: 'b, 'b> Deserialize<'de> for Object<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(all)
            }
        }
        deserializer.deserialize_map(Members).map(Self)
    }
}

impl<'b> Fields<'b> {
    /// Reads a JSON object, which is a request's body or lies in one.
    ///
    /// # Errors
    /// [`ProblemKind::NotJson`], or [`ProblemKind::InvalidShape`] if the JSON is not an object.
    pub fn parse(json: &'b [u8], place: &Pointer) -> Result<Self, Problem> {
        let problem = |error| Problem::for_body(place, vec![explain(&error, json)]);
        let Object(members) = serde_json::from_slice(json).map_err(problem)?;
        let mut fields = Self { left: Vec::with_capacity(members.len()), faults: Vec::new() };
        for (name, value) in members {
            match serde_json::from_str(name.get()) {
                Ok(name) => fields.left.push((name, value)),
                Err(_) if fields.faults.is_empty() => {
                    fields.fault(Problem::new(ProblemKind::InvalidShape, HALF_A_NAME))
                }
                Err(_) => {}
            }
        }
        Ok(fields)
    }

    /// Whether there is such a field to take.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.left.iter().any(|(given, _)| given == name)
    }

    /// Takes a field that is required. Without a value it is at fault.
    pub fn required(&mut self, name: &'static str) -> Option<&'b RawValue> {
        let found = self.optional(name).filter(|value| value.get() != "null");
        if found.is_none() {
            self.misshapen(name, format!("The field \"{name}\" is missing or null; give it a value."));
        }
        found
    }

    /// Takes a field whose `null` is a value like any other.
    pub fn optional(&mut self, name: &str) -> Option<&'b RawValue> {
        let place = self.left.iter().position(|(given, _)| given == name)?;
        let (_, value) = self.left.remove(place);
        let before = self.left.len();
        self.left.retain(|(given, _)| given != name);
        if self.left.len() < before {
            self.misshapen(name, format!("The field \"{name}\" is repeated; send it once."));
        }
        Some(value)
    }

    /// Takes an optional text. `null` is at fault.
    pub fn optional_text(&mut self, name: &'static str) -> Option<String> {
        if !self.has(name) {
            return None;
        }
        if self.left.iter().any(|(given, value)| given == name && value.get() == "null") {
            self.optional(name);
            self.misshapen(name, format!("The field \"{name}\" is null; give it a value, or leave it out."));
            return None;
        }
        self.text(name)
    }

    /// Takes a required text.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.required(name)?;
        let text = serde_json::from_str(value.get()).ok();
        if text.is_none() {
            // JSON's grammar permits only these strings that are not valid text.
            let why = if value.get().starts_with('"') {
                "is invalid: it has half of a surrogate pair, such as \\ud800, which is not a character."
            } else {
                "has the wrong type; send a string."
            };
            self.misshapen(name, format!("The field \"{name}\" {why}"));
        }
        text
    }

    /// Takes all fields, each of which must be a text. A field of another type is a fault, and a
    /// repeated one is a fault when it is taken.
    pub(crate) fn texts(&mut self) -> Vec<(String, String)> {
        let mut texts = Vec::with_capacity(self.left.len());
        for (name, value) in std::mem::take(&mut self.left) {
            match serde_json::from_str(value.get()) {
                Ok(text) => texts.push((name, text)),
                Err(_) => {
                    self.misshapen(&name, format!("The field \"{}\" has the wrong type; send a string.", echoed(&name)))
                }
            }
        }
        texts
    }

    /// Takes the text of a required number, so that no number is rounded.
    pub fn number(&mut self, name: &'static str) -> Option<&'b str> {
        let text = self.required(name)?.get();
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if !is_number {
            self.misshapen(name, format!("The field \"{name}\" is not a number; send a number without quotes."));
        }
        is_number.then_some(text)
    }

    /// Takes a required list.
    pub fn list(&mut self, name: &'static str) -> Option<Vec<&'b RawValue>> {
        let list = serde_json::from_str(self.required(name)?.get()).ok();
        if list.is_none() {
            self.misshapen(name, format!("The field \"{name}\" has the wrong type; send a list."));
        }
        list
    }

    /// Adds a fault.
    pub fn fault(&mut self, fault: Problem) {
        self.faults.push(fault);
    }

    fn misshapen(&mut self, name: &str, detail: String) {
        self.fault(Problem::new(ProblemKind::InvalidShape, detail).at(name));
    }

    /// Ends the reading: each field that was not taken is unknown. Returns all faults, each unknown
    /// name once, and at most as many of them as a problem shows.
    #[must_use]
    pub fn end(mut self) -> Vec<Problem> {
        let left = std::mem::take(&mut self.left);
        let mut seen = HashSet::new();
        let unknown = left.iter().map(|(name, _)| name).filter(|name| seen.insert(*name));
        for name in unknown.take(MAX_ERRORS) {
            self.misshapen(name, format!("The field \"{}\" is unknown; remove it.", echoed(name)));
        }
        self.faults
    }
}

fn explain(error: &serde_json::Error, json: &[u8]) -> Problem {
    match error.classify() {
        // An object was expected, so the rest of another value is not read yet.
        Category::Data => match serde_json::from_slice::<&RawValue>(json) {
            Ok(_) => Problem::new(ProblemKind::InvalidShape, "The JSON is not an object; send an object."),
            Err(error) => explain_syntax(&error),
        },
        Category::Io | Category::Syntax | Category::Eof => explain_syntax(error),
    }
}

fn explain_syntax(error: &serde_json::Error) -> Problem {
    match error.classify() {
        Category::Eof if error.line() <= 1 && error.column() == 0 => {
            Problem::new(ProblemKind::NotJson, "The request has no body; send a JSON object.")
        }
        _ => Problem::new(
            ProblemKind::NotJson,
            format!("The body is not valid JSON: {error}; correct it there, and send it again."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads a body with a text and a list, and returns each fault's detail and field.
    fn faults(body: &str) -> Vec<(String, String)> {
        let faults = Fields::parse(body.as_bytes(), &Pointer::body()).map_or_else(
            |problem| vec![problem],
            |mut fields| {
                let (_text, _list) = (fields.text("someText"), fields.list("someList"));
                fields.end()
            },
        );
        let text = |fault: &serde_json::Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
        faults.iter().map(|fault| json!(fault)).map(|fault| (text(&fault, "detail"), text(&fault, "field"))).collect()
    }

    #[test]
    fn every_fault_names_its_field_and_repeats_no_more() {
        let long = "n".repeat(10_000);
        let cut = format!("{}…", "n".repeat(61));
        let unknown = |name: &str| (format!("The field \"{name}\" is unknown; remove it."), name.to_owned());
        let of = |name: &str, detail: &str| (format!("The field \"{name}\" {detail}"), name.to_owned());
        for (more, want) in [
            (json!({}), vec![]),
            (json!({ "extra": 1, "": 2 }), vec![unknown(""), unknown("extra")]),
            (json!({ "a`b` at line 1": 1 }), vec![unknown("a`b` at line 1")]),
            (json!({ long.as_str(): 1 }), vec![unknown(&cut)]),
            (json!({ "someText": 1 }), vec![of("someText", "has the wrong type; send a string.")]),
            (json!({ "someText": null }), vec![of("someText", "is missing or null; give it a value.")]),
            (
                json!({ "someText": [], "someList": "expected a list", "extra": 1 }),
                vec![
                    of("someText", "has the wrong type; send a string."),
                    of("someList", "has the wrong type; send a list."),
                    unknown("extra"),
                ],
            ),
        ] {
            let mut body = json!({ "someText": "text", "someList": [1] });
            let more = more.as_object().cloned().unwrap_or_default();
            body.as_object_mut().into_iter().for_each(|body| body.extend(more.clone()));
            assert_eq!(faults(&body.to_string()), want, "{body}");
        }
        let twice = r#"{"someText":"a","someList":[],"someText":1,"extra":1,"extra":2}"#;
        let repeated = of("someText", "is repeated; send it once.");
        assert_eq!(faults(twice), [repeated, unknown("extra")]);
        let half =
            of("someText", "is invalid: it has half of a surrogate pair, such as \\ud800, which is not a character.");
        assert_eq!(faults(r#"{"someText":"\ud800","someList":[]}"#), [half]);
        let names = r#"{"someText":"","someList":[],"\ud800":1,"a\udc00":2}"#;
        assert_eq!(faults(names), [(HALF_A_NAME.to_owned(), String::new())]);
    }

    #[test]
    fn what_is_no_object_has_one_fault() {
        for (body, want) in [
            ("", "The request has no body; send a JSON object."),
            ("[]", "The JSON is not an object; send an object."),
            (" [1, {}]\n", "The JSON is not an object; send an object."),
            (
                "[",
                "The body is not valid JSON: EOF while parsing a list at line 1 column 1; correct it there, and send it again.",
            ),
            (
                "[1,2",
                "The body is not valid JSON: EOF while parsing a list at line 1 column 4; correct it there, and send it again.",
            ),
            (
                "[]x",
                "The body is not valid JSON: trailing characters at line 1 column 3; correct it there, and send it again.",
            ),
            (
                "\"abc",
                "The body is not valid JSON: EOF while parsing a string at line 1 column 4; correct it there, and send it again.",
            ),
            ("\"{}\"", "The JSON is not an object; send an object."),
            (
                "{",
                "The body is not valid JSON: EOF while parsing an object at line 1 column 1; correct it there, and send it again.",
            ),
            (
                "{} {}",
                "The body is not valid JSON: trailing characters at line 1 column 4; correct it there, and send it again.",
            ),
        ] {
            assert_eq!(faults(body), [(want.to_owned(), String::new())], "{body}");
        }
    }
}
