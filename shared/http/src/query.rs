//! The query parameters of a request. Each is sent once, except lists.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use crate::problem::{Problem, ProblemKind};

/// A request's query parameters, decoded.
#[derive(Debug, Clone)]
pub struct Query<'e> {
    pub(crate) pairs: Vec<(Cow<'e, str>, Cow<'e, str>)>,
}

impl Query<'_> {
    /// The text of a parameter, if it is present.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidParameter`] if it is repeated.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut values = self.pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_ref());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(invalid_parameter(name, &"it is repeated; send it once")),
        }
    }

    /// Whether a parameter is present.
    pub fn has(&self, name: &'static str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    /// A list, parsed, if it is present. The parameter can be repeated, or have commas between the elements.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidParameter`] if it does not parse.
    pub fn list<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, Problem> {
        if !self.has(name) {
            return Ok(None);
        }
        let values: Vec<&str> =
            self.pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_ref()).collect();
        values.join(",").parse().map(Some).map_err(|error| invalid_parameter(name, &error))
    }

    /// A parameter, parsed, if it is present.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidParameter`] if it is repeated or does not parse.
    pub fn get<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, Problem> {
        self.text(name)?.map(|text| text.parse().map_err(|error| invalid_parameter(name, &error))).transpose()
    }
}

/// A problem for an invalid parameter; `why` is a clause without a full stop.
pub fn invalid_parameter(name: &'static str, why: &dyn Display) -> Problem {
    Problem::new(ProblemKind::InvalidParameter, format!("The parameter \"{name}\" is invalid: {why}.")).at(name)
}
