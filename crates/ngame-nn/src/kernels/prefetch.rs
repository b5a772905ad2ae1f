//! Asking for memory before it is needed.
//!
//! Whoever visits rows in an order that no processor can guess, but that is known, waits less: the rows to
//! come are fetched while the one at hand is worked on.

/// The bytes of a row that are asked for; what follows one after the other the processor fetches by itself.
const FETCHED: usize = 512;

/// The bytes of a line of cache, the unit that memory is fetched in.
const LINE: usize = 64;

/// Asks for the beginning of a row, where there is an instruction for it. Changes nothing but the cache.
#[inline(always)]
pub fn prefetch<S>(row: &[S]) {
    let size = size_of::<S>().max(1);
    let (line, most) = ((LINE / size).max(1), row.len().min(FETCHED / size));
    let mut at = 0;
    while at < most {
        line_of(&row[at]);
        at += line;
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line_of<S>(value: &S) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has the instruction, and it changes nothing but the cache.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line_of<S>(_: &S) {}
