//! Lists of ascending numbers in few bytes: each as its distance from the one before.
//!
//! Of tens of thousands of labels, the lists that matter have thousands, so most distances fit into one
//! byte. A distance has seven bits in a byte, the lowest first; the eighth says that more follow.

use std::iter;

/// The distances of lists that stand back to back in `numbers` and begin at `offsets`.
pub(super) fn encode(numbers: &[u32], offsets: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * numbers.len());
    for ends in offsets.windows(2) {
        let mut before = 0;
        for &number in &numbers[ends[0] as usize..ends[1] as usize] {
            let mut rest = number - before;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            before = number;
        }
    }
    bytes
}

/// The lists again; nothing if the bytes are not those of lists that begin at `offsets`.
pub(super) fn decode(bytes: &[u8], offsets: &[u64]) -> Option<Vec<u32>> {
    let mut bytes = bytes.iter();
    // A number has a byte at least: offsets that are wrong reserve no more than the file has.
    let mut numbers = Vec::with_capacity(bytes.len());
    for ends in offsets.windows(2) {
        let mut before = 0u32;
        for _ in ends[0]..ends[1] {
            before = before.checked_add(distance(&mut bytes)?)?;
            numbers.push(before);
        }
    }
    bytes.as_slice().is_empty().then_some(numbers)
}

fn distance(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let mut distance = 0u64;
    for (at, &byte) in iter::zip(0..5, bytes) {
        distance |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return u32::try_from(distance).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flat(lists: &[Vec<u32>]) -> (Vec<u32>, Vec<u64>) {
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len() as u64;
            Some(*end)
        });
        (lists.concat(), iter::once(0).chain(ends).collect())
    }

    #[test]
    fn close_numbers_take_a_byte() {
        let (numbers, offsets) = flat(&[vec![5, 7, 134], vec![], vec![200, u32::MAX]]);
        let bytes = encode(&numbers, &offsets);
        assert_eq!(bytes[..5], [5, 2, 127, 200, 1]);
        assert_eq!(bytes.len(), 5 + 5);
        assert_eq!(decode(&bytes, &offsets), Some(numbers));
    }

    #[test]
    fn other_bytes_are_refused() {
        let decode_two = |bytes: &[u8]| decode(bytes, &[0, 2]);
        assert_eq!(decode_two(&[3, 4]), Some(vec![3, 7]));
        assert_eq!(decode_two(&[3]), None);
        assert_eq!(decode_two(&[3, 4, 5]), None);
        assert_eq!(decode_two(&[3, 0x84]), None);
        assert_eq!(decode_two(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]), None);
        assert_eq!(decode_two(&[0x80, 0x80, 0x80, 0x80, 0x10, 1]), None);
        assert_eq!(decode_two(&[0x80, 0x80, 0x80, 0x80, 0x80, 0, 1]), None);
        assert_eq!(decode(&[1], &[0, u64::MAX]), None);
        assert_eq!(decode(&[1], &[7, 0]), None);
    }

    proptest! {
        #[test]
        fn lists_come_back(lists in prop::collection::vec(prop::collection::btree_set(any::<u32>(), 0..9), 0..9)) {
            let lists: Vec<Vec<u32>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let (numbers, offsets) = flat(&lists);
            prop_assert_eq!(decode(&encode(&numbers, &offsets), &offsets), Some(numbers));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes: Vec<u8>, offsets: Vec<u64>) {
            let _ = decode(&bytes, &offsets);
        }
    }
}
