//! Configuration: read once, through a lookup function, into one typed struct per function.

use std::fmt::{self, Display};
use std::str::FromStr;

use payments_store::TableNames;

/// Looks a variable up by its name. Tests bring their own, so that they never touch the process's
/// environment.
pub struct Lookup<'a>(&'a dyn Fn(&str) -> Option<String>);

/// A variable that is missing or does not do.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not set, or empty.
    #[error("the environment variable {0} is not set; set it to {1}")]
    Missing(&'static str, &'static str),
    /// It is set to something else than it should be.
    #[error("the environment variable {0} is {1:?}: {2}")]
    Invalid(&'static str, String, String),
}

/// As text: what a function's `main` returns is shown by `Debug`, and a person has to read it.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'a> Lookup<'a> {
    /// A lookup through any function.
    #[must_use]
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self(lookup)
    }

    /// The value of a variable, if it is set and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// A variable that has to be there; `wants` says what it is.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn required<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
        wants: &'static str,
    ) -> Result<T, ConfigError> {
        self.optional(name)?.ok_or(ConfigError::Missing(name, wants))
    }

    /// A variable that may be there.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn optional<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, ConfigError> {
        let parse = |text: String| text.parse().map_err(|e: T::Err| ConfigError::Invalid(name, text, e.to_string()));
        self.text(name).map(parse).transpose()
    }
}

impl Lookup<'static> {
    /// A lookup in the process's environment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where configuration comes from")]
    pub fn environment() -> Self {
        Self(&|name| std::env::var(name).ok())
    }
}

/// Where the data is: what every function with a store needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataConfig {
    /// `PAYMENTS_TABLE` and `HISTORY_TABLE`.
    pub tables: TableNames,
    /// `DYNAMODB_ENDPOINT`: another engine than AWS's own, for one machine and tests.
    pub endpoint: Option<String>,
}

impl DataConfig {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let tables = TableNames {
            payments: lookup.required("PAYMENTS_TABLE", "the name of the hot table")?,
            history: lookup.required("HISTORY_TABLE", "the name of the long-term table")?,
        };
        Ok(Self { tables, endpoint: lookup.text("DYNAMODB_ENDPOINT") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_variable_and_what_it_wants() {
        let set = |name: &str| match name {
            "PAYMENTS_TABLE" => Some("payments".to_owned()),
            "HISTORY_TABLE" => Some(String::new()),
            "HORIZON_DAYS" => Some("many".to_owned()),
            _ => None,
        };
        let lookup = Lookup::new(&set);
        let missing = DataConfig::read(&lookup).unwrap_err().to_string();
        assert_eq!(
            missing,
            "the environment variable HISTORY_TABLE is not set; set it to the name of the long-term table"
        );
        let invalid = lookup.optional::<u32>("HORIZON_DAYS").unwrap_err().to_string();
        assert_eq!(invalid, "the environment variable HORIZON_DAYS is \"many\": invalid digit found in string");
        assert_eq!(lookup.optional::<u32>("NONE"), Ok(None));
    }
}
