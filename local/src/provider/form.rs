//! The parameters of a request, as a query or a form has them.

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct Form(Vec<(String, String)>);

/// A parameter that occurs more than once, which OAuth 2.0 does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repeated;

impl Form {
    pub(super) fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// Returns a parameter. One without a value counts as left out (RFC 6749, section 3.1).
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, Repeated> {
        let mut values = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Repeated),
            (first, None) => Ok(first.filter(|value| !value.is_empty())),
        }
    }
}
