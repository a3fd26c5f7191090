//! JSON Pointers (RFC 6901) into the body of a request: problems name the place of a fault with them.

use std::fmt;

/// A place in the body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(String);

impl Pointer {
    /// The body itself.
    #[must_use]
    pub fn body() -> Self {
        Self(String::new())
    }

    /// An element of a list in the body.
    #[must_use]
    pub fn entry(list: &'static str, place: usize) -> Self {
        Self(format!("/{list}/{place}"))
    }

    /// A field of the object here.
    #[must_use]
    pub(crate) fn field(&self, name: &str) -> Self {
        Self(format!("{self}/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_to_its_field() {
        let body = serde_json::json!({ "a/b~c": 1, "payments": [{}, { "": 2 }] });
        let at = |pointer: Pointer| body.pointer(&pointer.to_string()).cloned();
        assert_eq!(at(Pointer::body()), Some(body.clone()));
        assert_eq!(at(Pointer::body().field("a/b~c")), Some(1.into()));
        assert_eq!(at(Pointer::entry("payments", 1).field("")), Some(2.into()));
    }
}
