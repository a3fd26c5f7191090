//! The fields of a form: from an HTML page, or the same as JSON.

use std::fmt::Display;
use std::str::FromStr;

use crate::echo::echoed;
use crate::json::Fields;
use crate::pointer::Pointer;
use crate::problem::{Problem, ProblemKind};

/// The fields of a form, each a text. Each is taken once; [`Form::end`] finds those that were not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    left: Vec<(String, String)>,
}

impl Form {
    /// The form with these fields.
    pub fn from_fields(left: Vec<(String, String)>) -> Self {
        Self { left }
    }

    /// Reads the body of a page's form.
    pub(crate) fn from_page(body: &[u8]) -> Self {
        Self { left: form_urlencoded::parse(body).into_owned().collect() }
    }

    /// Reads an object whose values are texts.
    ///
    /// # Errors
    /// [`ProblemKind::NotJson`], or [`ProblemKind::InvalidShape`] if it is another JSON.
    pub(crate) fn from_json(body: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::parse(body, &Pointer::body())?;
        let left = fields.texts();
        let faults = fields.end();
        if faults.is_empty() { Ok(Self { left }) } else { Err(Problem::for_body(&Pointer::body(), faults)) }
    }

    /// Takes a field of at most `most` bytes; empty if it is missing.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidShape`] if it is repeated or longer.
    pub fn take(&mut self, name: &'static str, most: usize) -> Result<String, Problem> {
        let Some(place) = self.left.iter().position(|(given, _)| given == name) else { return Ok(String::new()) };
        let (_, value) = self.left.remove(place);
        if self.left.iter().any(|(given, _)| given == name) {
            return Err(invalid_field(name, &"it is repeated; send it once"));
        }
        match value.len().checked_sub(most) {
            None | Some(0) => Ok(value),
            Some(_) => Err(invalid_field(name, &format!("it has more than {most} bytes"))),
        }
    }

    /// Takes a required field, parsed.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidShape`] if it is missing, repeated, longer than `most` bytes, or does not parse.
    pub fn get<T: FromStr<Err: Display>>(&mut self, name: &'static str, most: usize) -> Result<T, Problem> {
        let text = self.take(name, most)?;
        if text.is_empty() {
            return Err(invalid_field(name, &"it is missing or empty"));
        }
        text.parse().map_err(|error| invalid_field(name, &error))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidShape`] if a field was not taken.
    pub fn end(self) -> Result<(), Problem> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => {
                let detail = format!("The field \"{}\" is unknown; remove it.", echoed(name));
                Err(Problem::new(ProblemKind::InvalidShape, detail).at(name))
            }
        }
    }
}

/// A problem for an invalid field; `why` is a clause without a full stop.
pub fn invalid_field(name: &'static str, why: &dyn Display) -> Problem {
    Problem::new(ProblemKind::InvalidShape, format!("The field \"{name}\" is invalid: {why}.")).at(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_taken_once_and_bounded() {
        let of = |body: &str| Form::from_page(body.as_bytes());
        assert_eq!(of("a=1%0D%0A2&b=").take("a", 4).ok().as_deref(), Some("1\r\n2"));
        assert_eq!(of("a=12345").take("a", 4).err().map(|problem| problem.kind()), Some(ProblemKind::InvalidShape));
        assert!(of("a=1&a=2").take("a", 4).is_err());
        assert_eq!(of("").take("a", 4).ok().as_deref(), Some(""));
        assert!(of("").get::<u8>("a", 4).is_err());
        assert_eq!(of("a=7").get::<u8>("a", 4).ok(), Some(7));
        assert!(of("a=1").end().is_err());
        assert!(of("").end().is_ok());
    }

    #[test]
    fn json_is_the_same_form() {
        assert_eq!(Form::from_json(br#"{"a":"1","b":""}"#).ok(), Some(Form::from_page(b"a=1&b=")));
        for wrong in ["", "[]", r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":{}}"#, r#"{"a":"\ud800"}"#] {
            assert!(Form::from_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let mut twice = Form::from_json(br#"{"a":"1","a":"2"}"#).unwrap();
        assert!(twice.take("a", 4).is_err());
    }
}
