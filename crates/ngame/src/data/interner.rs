//! Strings to numbers, each string stored once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::texts::Texts;

/// Gives each distinct string the number of its first appearance.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    strings: Texts,
    /// Numbers only; the strings they stand for are in `strings`.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// The strings so far.
    pub(crate) fn strings(&self) -> &Texts {
        &self.strings
    }

    /// The strings, in the order of their numbers.
    pub(crate) fn into_strings(self) -> Texts {
        self.strings
    }

    /// The number of a string, if it has one.
    pub(crate) fn get(&self, string: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(string);
        self.table.find(hash, |&number| self.strings.get(number as usize) == string).copied()
    }

    /// The number of a string, and whether it is new.
    ///
    /// # Panics
    /// Beyond `u32::MAX` strings; readers check their counts first.
    pub(crate) fn intern(&mut self, string: &str) -> (u32, bool) {
        if let Some(number) = self.get(string) {
            return (number, false);
        }
        let number = u32::try_from(self.strings.len()).expect("strings are counted in u32");
        self.strings.push(string);
        let Self { strings, table, hasher } = self;
        table.insert_unique(hasher.hash_one(string), number, |&number| {
            hasher.hash_one(strings.get(number as usize))
        });
        (number, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_get_equal_numbers() {
        let mut interner = Interner::default();
        for n in 0..1000 {
            assert_eq!(interner.intern(&format!("label {n}")), (n, true));
        }
        for n in 0..1000 {
            assert_eq!(interner.intern(&format!("label {n}")), (n, false));
        }
        assert_eq!(interner.get("label 7"), Some(7));
        assert_eq!(interner.get("label"), None);
        assert_eq!(interner.into_strings().len(), 1000);
    }
}
