//! The refusal of a step: the fact that is otherwise.

use serde_json::Value;

use super::{Fact, Want, includes, short};

impl Fact {
    /// The found value, the expected one, and what to do.
    pub(super) fn refusal(&self, found: &Value) -> String {
        let mut found = found;
        let mut wanted = self.want.to_string();
        let mut field = String::new();
        if let Want::Is(value) = &self.want {
            let mut value = value;
            // Of an object, the first field that differs.
            while let (Value::Object(all), Value::Object(fields)) = (found, value)
                && let Some((name, other)) =
                    fields.iter().find(|(name, it)| !all.get(*name).is_some_and(|found| includes(found, it)))
            {
                field = format!("{name} of {field}");
                found = all.get(name).unwrap_or(&Value::Null);
                value = other;
            }
            wanted = short(value);
        }
        let found = match &self.want {
            Want::Imports(expected) if !found.is_null() => expected.unexpected(found).join("; "),
            _ if found.is_null() => "missing".to_owned(),
            _ => short(found),
        };
        format!("{field}{} is {found}, expected {wanted}; {}", self.name, self.remedy)
    }
}
