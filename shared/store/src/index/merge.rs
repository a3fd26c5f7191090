//! The merge of a range's rows in the hot table and in history: in order, each payment once, and only
//! as far as both tables were read.

use std::collections::BTreeMap;

/// One table's rows of a range up to `end`, or all of them if it is `None`.
pub(crate) struct Stretch<K, V> {
    pub(crate) rows: Vec<(K, V)>,
    pub(crate) end: Option<K>,
}

/// A merged page, and the key after which the next one begins, if there may be more.
pub(crate) struct Merged<K, V> {
    pub(crate) rows: Vec<V>,
    pub(crate) next: Option<K>,
}

/// Merges stretches of the same range into a page of at most `limit` rows. If two have the same key,
/// the row of the first one is used.
pub(crate) fn merge<K: Ord + Copy, V>(stretches: Vec<Stretch<K, V>>, limit: usize) -> Merged<K, V> {
    let end = stretches.iter().filter_map(|stretch| stretch.end).min();
    let mut by_key = BTreeMap::new();
    for (key, row) in stretches.into_iter().flat_map(|stretch| stretch.rows) {
        if end.is_none_or(|end| key <= end) {
            by_key.entry(key).or_insert(row);
        }
    }
    let cut = by_key.len() > limit;
    let page: Vec<(K, V)> = by_key.into_iter().take(limit).collect();
    let next = if cut { page.last().map(|(key, _)| *key) } else { end };
    Merged { rows: page.into_iter().map(|(_, row)| row).collect(), next }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The stretch of a table with these keys after `after`.
    fn read(table: &BTreeSet<u8>, after: Option<u8>, limit: usize) -> Stretch<u8, u8> {
        let rest: Vec<u8> = table.iter().copied().filter(|key| after.is_none_or(|after| *key > after)).collect();
        let rows: Vec<(u8, u8)> = rest.iter().take(limit).map(|key| (*key, *key)).collect();
        let end = if rest.len() > limit { rows.last().map(|(key, _)| *key) } else { None };
        Stretch { rows, end }
    }

    proptest! {
        #[test]
        fn pages_have_each_row_of_both_tables_once_in_order(
            hot in prop::collection::btree_set(0_u8..60, 0..30),
            history in prop::collection::btree_set(0_u8..60, 0..30),
            limit in 1_usize..12,
        ) {
            let mut seen = Vec::new();
            let mut after = None;
            loop {
                let page = merge(vec![read(&hot, after, limit), read(&history, after, limit)], limit);
                prop_assert!(page.rows.len() <= limit);
                seen.extend(page.rows);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let want: Vec<u8> = hot.union(&history).copied().collect();
            prop_assert_eq!(seen, want);
        }
    }
}
