//! Item sizes as DynamoDB counts them.
//!
//! From the Developer Guide, "DynamoDB item sizes and formats": names and strings have their UTF-8
//! bytes, a number about one byte per two significant digits plus one, a list or map three bytes plus
//! one per element, a boolean or null one byte.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::item::Item;

/// The largest details item with its data as it came, in bytes as DynamoDB counts them. It takes 8 write units.
pub const MAX_DETAILS_BYTES: usize = 8_192;

/// The part of [`MAX_DETAILS_BYTES`] that is reserved for our own content, such as keys, names of attributes, times and
/// the creator. Today's longest details have some 400 bytes of it. The rest is for later attributes.
pub const OWN_DETAILS_BYTES: usize = 640;

/// The size of an item in bytes, as DynamoDB bills it.
pub fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number_bytes(number),
        AttributeValue::L(list) => 3 + list.iter().map(|value| 1 + value_bytes(value)).sum::<usize>(),
        AttributeValue::M(map) => 3 + map.len() + item_bytes(map),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|number| number_bytes(number)).sum(),
        AttributeValue::Bs(set) => set.iter().map(|bytes| bytes.as_ref().len()).sum(),
        _ => 1,
    }
}

/// One byte per two significant digits, one for the exponent, one more for a sign.
pub(crate) fn number_bytes(number: &str) -> usize {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    significant.div_ceil(2) + 1 + usize::from(number.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_developer_guide() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let number = |number: &str| AttributeValue::N(number.to_owned());
        let map = AttributeValue::M([("ab".to_owned(), text("cde"))].into());
        for (value, want) in [
            (text("héllo"), 6),
            (number("0"), 1),
            (number("27"), 2),
            (number("-27"), 3),
            (number("461"), 3),
            (number("100000"), 2),
            (AttributeValue::Bool(true), 1),
            (AttributeValue::Null(true), 1),
            (AttributeValue::L(vec![text("ab"), number("1")]), 3 + (1 + 2) + (1 + 2)),
            (map, 3 + 1 + 2 + 3),
        ] {
            assert_eq!(value_bytes(&value), want, "{value:?}");
        }
    }
}
