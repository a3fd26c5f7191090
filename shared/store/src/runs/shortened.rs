//! Shortens the JSON of an outcome to a number of bytes, so that it stays readable: its longest lists lose their ends.

use serde_json::{Map, Value};

/// The field of an outcome that was shortened.
const SHORTENED: &str = "shortened";

/// The most bytes of a text in an outcome that is still too long without its lists.
const MAX_TEXT_BYTES: usize = 64;

/// Returns an object with at most `most` bytes of JSON. A shortened object has the field `shortened`, which is true.
pub(super) fn shortened(mut value: Value, most: usize) -> Value {
    if value.to_string().len() <= most {
        return value;
    }
    if let Value::Object(fields) = &mut value {
        fields.insert(SHORTENED.to_owned(), true.into());
    }
    while value.to_string().len() > most {
        let longest = longest_list(&value);
        if longest == 0 {
            break;
        }
        halve_lists(&mut value, longest);
    }
    if value.to_string().len() > most {
        cut_texts(&mut value);
    }
    if value.to_string().len() <= most {
        return value;
    }
    let scalars = |fields: Map<String, Value>| fields.into_iter().filter(|(_, it)| !it.is_object()).collect();
    match value {
        Value::Object(fields) => within(scalars(fields), most),
        _ => Value::Object(Map::new()),
    }
}

/// The first fields of an object, as many as fit.
fn within(fields: Map<String, Value>, most: usize) -> Value {
    let mut left = most.saturating_sub(2);
    let fits = |(name, value): &(String, Value)| {
        // A name and its value, with two quotes, a colon and a comma.
        let bytes = Value::from(name.as_str()).to_string().len() + value.to_string().len() + 2;
        left.checked_sub(bytes).inspect(|rest| left = *rest).is_some()
    };
    Value::Object(fields.into_iter().filter(fits).collect())
}

fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(longest_list).max().unwrap_or(0).max(list.len()),
        Value::Object(fields) => fields.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

/// Halves the lists that have more than half of `longest` elements.
fn halve_lists(value: &mut Value, longest: usize) {
    match value {
        Value::Array(list) => {
            list.truncate(list.len().min(longest / 2));
            list.iter_mut().for_each(|value| halve_lists(value, longest));
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| halve_lists(value, longest)),
        _ => {}
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => text.truncate(cut(text, MAX_TEXT_BYTES).len()),
        Value::Array(list) => list.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        _ => {}
    }
}

/// The beginning of a text, of whole characters.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_lose_their_ends_and_numbers_stay() {
        let long = json!({"drained": 7, "published": vec!["a file"; 100], "few": [1, 2]});
        let short = shortened(long.clone(), 300);
        assert_eq!((&short["drained"], &short["few"], &short["shortened"]), (&json!(7), &json!([1, 2]), &json!(true)));
        assert_eq!(short["published"].as_array().unwrap().len(), 25);
        assert_eq!(shortened(long.clone(), 10_000), long, "it fits");
    }

    #[test]
    fn without_lists_texts_are_cut_and_then_objects_go() {
        assert_eq!(shortened(json!({"why": "é".repeat(99)}), 100), json!({"why": "é".repeat(32), "shortened": true}));
        let groups: Map<String, Value> = (0..99).map(|n| (n.to_string(), json!({"count": n}))).collect();
        assert_eq!(shortened(json!({"groups": groups, "stuck": 2}), 100), json!({"stuck": 2, "shortened": true}));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<u64>().prop_map(Value::from), ".{0,99}".prop_map(Value::from)];
        leaf.prop_recursive(3, 64, 9, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..9).prop_map(Value::from);
            let fields = prop::collection::btree_map(".{0,9}", inner, 0..9);
            prop_oneof![list, fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))]
        })
    }

    proptest! {
        #[test]
        fn any_outcome_fits(value in values(), most in 2_usize..500) {
            let short = shortened(json!({"outcome": value}), most);
            prop_assert!(short.to_string().len() <= most && short.is_object(), "{short}");
        }
    }
}
