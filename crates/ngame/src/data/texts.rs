//! Many texts in one allocation.

/// Texts stored back to back in one arena: 8 bytes a text beside its own bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    /// Where each text ends in `bytes`; it begins where the one before it ends.
    ends: Vec<u64>,
}

impl Texts {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no text (see [`Texts::is_blank`] for texts that are all empty).
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether every text is the empty string.
    pub fn is_blank(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes all texts have together.
    pub(crate) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All texts back to back, and where each ends.
    pub(crate) fn parts(&self) -> (&[u8], &[u64]) {
        (self.bytes.as_bytes(), &self.ends)
    }

    /// The texts of such parts; `None` if they do not fit together.
    pub(crate) fn from_parts(bytes: Vec<u8>, ends: Vec<u64>) -> Option<Self> {
        let bytes = String::from_utf8(bytes).ok()?;
        let last = ends.last().copied().unwrap_or(0);
        let at_characters = || ends.iter().all(|&end| bytes.is_char_boundary(end as usize));
        (ends.is_sorted() && last == bytes.len() as u64 && at_characters())
            .then_some(Self { bytes, ends })
    }

    /// The text at `index`.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn get(&self, index: usize) -> &str {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[begin..self.ends[index] as usize]
    }

    /// The texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator + Clone {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.finish_text();
    }

    /// Adds a piece to the text being written, which [`Texts::finish_text`] completes.
    pub fn push_piece(&mut self, piece: &str) {
        self.bytes.push_str(piece);
    }

    /// Completes the text being written.
    pub fn finish_text(&mut self) {
        self.ends.push(self.bytes.len() as u64);
    }

    /// Adds all texts of `other`.
    pub fn append(&mut self, other: &Self) {
        let base = self.bytes.len() as u64;
        self.bytes.push_str(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| base + end));
    }

    /// The texts at `indices`, in that order.
    pub fn select(&self, indices: &[u32]) -> Self {
        let mut selected = Self::new();
        selected.ends.reserve_exact(indices.len());
        selected
            .bytes
            .reserve_exact(indices.iter().map(|&index| self.get(index as usize).len()).sum());
        for &index in indices {
            selected.push(self.get(index as usize));
        }
        selected
    }

    /// Gives spare memory back once no more texts will come.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// How many bytes the texts take in memory.
    pub fn memory(&self) -> u64 {
        (self.bytes.capacity() + self.ends.capacity() * size_of::<u64>()) as u64
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut all = Self::new();
        for text in texts {
            all.push(text.as_ref());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_went_in() {
        let texts: Texts = ["", "ä", "", "bc"].into_iter().collect();
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["", "ä", "", "bc"]);
        assert_eq!(texts.select(&[3, 0, 3]).iter().collect::<Vec<_>>(), ["bc", "", "bc"]);
    }

    #[test]
    fn append_shifts_the_ends() {
        let mut texts: Texts = ["a", "bc"].into_iter().collect();
        texts.append(&["", "def"].into_iter().collect());
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "bc", "", "def"]);
    }

    #[test]
    fn pieces_make_one_text() {
        let mut texts: Texts = ["a"].into_iter().collect();
        texts.push_piece("b");
        texts.push_piece("c");
        texts.finish_text();
        texts.finish_text();
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "bc", ""]);
        assert!(!texts.is_blank());
    }

    #[test]
    fn parts_come_back_and_parts_that_do_not_fit_are_refused() {
        let texts: Texts = ["é", "", "ab"].into_iter().collect();
        let (bytes, ends) = texts.parts();
        let again = |bytes: &[u8], ends: &[u64]| Texts::from_parts(bytes.to_vec(), ends.to_vec());
        assert_eq!(again(bytes, ends), Some(texts.clone()));
        assert_eq!(again(b"", &[]), Some(Texts::new()));
        for ends in [&[1, 2, 4][..], &[2, 2, 3], &[4, 2, 4], &[2, 2, 5], &[]] {
            assert_eq!(again(bytes, ends), None, "{ends:?}");
        }
        assert_eq!(again(&[0xff], &[1]), None);
    }
}
