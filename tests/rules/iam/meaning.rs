//! Meanings of an expression in the store's source.

use std::collections::BTreeSet;

/// All that an expression can mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// Tables, by their field of `TableNames`.
    pub(super) tables: BTreeSet<String>,
    /// Patterns of partition keys.
    pub(super) keys: BTreeSet<String>,
    /// Arguments of the function.
    pub(super) arguments: BTreeSet<usize>,
}

impl Meaning {
    pub(super) fn add(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.keys.extend(other.keys);
        self.arguments.extend(other.arguments);
    }

    /// The same in a caller with these arguments.
    pub(super) fn given(&self, arguments: &[Self]) -> Self {
        let mut meaning = Self { arguments: BTreeSet::new(), ..self.clone() };
        for argument in self.arguments.iter().filter_map(|&place| arguments.get(place)) {
            meaning.add(argument.clone());
        }
        meaning
    }
}
