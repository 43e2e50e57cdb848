//! How much reading a message may take. The rules try many readings, and what they are tried on was written by others:
//! messages, tables, skills. Each look costs a step, of which one answer has a number; it is counted and not timed, so that
//! the same pieces have the same answer everywhere.

use std::cell::Cell;

/// Steps of one answer. One takes 50 to 100 ns on a laptop: all of them take half a second at most, and two on a Raspberry
/// Pi. What is said to a model of rules takes a hundredth of them.
const STEPS: usize = 5_000_000;

thread_local! {
    /// Steps that are left. An answer is made on one thread from its beginning to its end.
    static LEFT: Cell<usize> = const { Cell::new(STEPS) };
}

/// A new answer begins.
pub(crate) fn begin() {
    LEFT.set(STEPS);
}

/// Takes `steps`; false where none are left, and then nothing more is to be tried.
pub(crate) fn spend(steps: usize) -> bool {
    LEFT.with(|left| {
        let rest = left.get().saturating_sub(steps);
        left.set(rest);
        rest > 0
    })
}

/// Whether all steps were taken, so that what was found is not all that there may be.
pub(crate) fn is_spent() -> bool {
    LEFT.get() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_stays_so_until_the_next_answer() {
        begin();
        assert!(spend(STEPS - 1) && !is_spent());
        assert!(!spend(1) && !spend(1) && is_spent());
        begin();
        assert!(spend(1) && !is_spent());
    }
}
