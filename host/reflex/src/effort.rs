//! Limits the work for a message. The rules try many interpretations, and others wrote their input: messages, tables, skills.
//! Each lookup costs a step, and an answer has a limited number of steps. Steps are counted instead of measuring time, so that
//! the same pieces give the same answer everywhere.

use std::cell::Cell;

/// Maximum steps of one answer. A step takes 50 to 100 ns on a laptop, so all of them take at most half a second, or two on a
/// Raspberry Pi. Usual messages need a hundredth of them.
const STEPS: usize = 5_000_000;

thread_local! {
    /// The remaining steps. An answer is computed on one thread.
    static LEFT: Cell<usize> = const { Cell::new(STEPS) };
}

/// Begins a new answer.
pub(crate) fn begin() {
    LEFT.set(STEPS);
}

/// Takes `steps`. Returns false if none are left; then nothing more should be tried.
pub(crate) fn spend(steps: usize) -> bool {
    LEFT.with(|left| {
        let rest = left.get().saturating_sub(steps);
        left.set(rest);
        rest > 0
    })
}

/// Whether all steps were used, so that results may be incomplete.
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
