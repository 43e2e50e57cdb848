//! What a task writes to its standard output and standard error: the start and the end are kept, however much it is.

use crate::effect::label::LabelCell;
use crate::skill::limits::{Budget, BudgetKind, HitCell, Limit, LimitHit};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Collects what all processes of a task write to one of its two streams. Clones share one buffer.
#[derive(Clone)]
pub struct OutputBuffer(Arc<Inner>);

struct Inner {
    kept: Mutex<Kept>,
    /// Most bytes that are kept.
    cap: usize,
    /// Most bytes that are taken.
    most: u64,
    budget: Budget,
    hit: HitCell,
    /// Told of what comes, where somebody watches.
    came: Option<Arc<Notify>>,
    /// Of all that was written.
    label: LabelCell,
}

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl std::fmt::Debug for OutputBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputBuffer").field("cap", &self.0.cap).finish_non_exhaustive()
    }
}

impl OutputBuffer {
    pub fn new(cap: usize, budget: Budget, hit: HitCell, came: Option<Arc<Notify>>) -> Self {
        let most = match budget.of {
            BudgetKind::Exec { output_mib, .. } => output_mib << 20,
            BudgetKind::Skill | BudgetKind::Server => budget.output_kib << 10,
        };
        Self(Arc::new(Inner { kept: Mutex::default(), cap, most, budget, hit, came, label: LabelCell::default() }))
    }

    /// Takes bytes; fails when it was more than may be written at all.
    pub fn push(&self, bytes: &[u8]) -> Result<(), LimitHit> {
        let Inner { cap, most, .. } = &*self.0;
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.total += bytes.len() as u64;
        if kept.total > *most {
            return Err(self.0.hit.set(self.0.budget.hit(Limit::Output)));
        }
        let for_head = (cap / 2).saturating_sub(kept.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(for_head);
        kept.head.extend_from_slice(head);
        let for_tail = cap - cap / 2;
        kept.tail.extend(&tail[tail.len().saturating_sub(for_tail)..]);
        let over = kept.tail.len().saturating_sub(for_tail);
        kept.tail.drain(..over);
        drop(kept);
        if let Some(came) = &self.0.came {
            came.notify_one();
        }
        Ok(())
    }

    /// Of all that was written.
    pub fn label(&self) -> &LabelCell {
        &self.0.label
    }

    /// What was kept, as text, with a line in the middle that says how much is missing.
    pub fn text(&self) -> String {
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = kept.total - (kept.head.len() + kept.tail.len()) as u64;
        let (front, back) = kept.tail.as_slices();
        let tail = [front, back].concat();
        if missing == 0 {
            return String::from_utf8_lossy(&[&kept.head[..], &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&kept.head), String::from_utf8_lossy(&tail));
        let newline = if head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{newline}[… {missing} bytes left out …]\n{tail}")
    }

    /// What was written behind the first `from` bytes, as far as it is kept, and how much there is by now. Without what
    /// was left out, of which a line tells.
    pub fn since(&self, from: u64) -> (Vec<u8>, u64) {
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (head, tail) = (kept.head.len() as u64, kept.tail.len() as u64);
        let tail_at = kept.total - tail;
        let skip = |from: u64| usize::try_from(from).unwrap_or(usize::MAX);
        let mut bytes: Vec<u8> = kept.head.iter().skip(skip(from)).copied().collect();
        let at = from.max(head);
        if at < tail_at {
            bytes.extend_from_slice(format!("\n[… {} bytes left out …]\n", tail_at - at).as_bytes());
        }
        bytes.extend(kept.tail.iter().skip(skip(at.saturating_sub(tail_at))));
        (bytes, kept.total)
    }

    /// Bytes that were written.
    pub fn total(&self) -> u64 {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;

    fn output(cap: usize) -> OutputBuffer {
        let config = Config::default();
        OutputBuffer::new(cap, Budget::exec(&config.exec, &config.engine), HitCell::default(), None)
    }

    #[test]
    fn the_middle_of_too_much_is_left_out() {
        let all = output(10);
        all.push(b"0123456789").unwrap();
        assert_eq!((all.text().as_str(), all.total()), ("0123456789", 10));
        all.push(b"abc").unwrap();
        assert_eq!(all.text(), "01234\n[… 3 bytes left out …]\n89abc");
        all.push(&[b'x'; 1000]).unwrap();
        assert_eq!(all.text(), "01234\n[… 1003 bytes left out …]\nxxxxx");
    }

    #[test]
    fn who_watches_gets_each_byte_once_and_hears_of_what_was_left_out() {
        let all = output(10);
        all.push(b"01234567").unwrap();
        assert_eq!(all.since(0), (b"01234567".to_vec(), 8));
        assert_eq!(all.since(8), (Vec::new(), 8));
        all.push(b"89").unwrap();
        assert_eq!(all.since(6), (b"6789".to_vec(), 10));
        all.push(&[b'x'; 100]).unwrap();
        let (bytes, at) = all.since(10);
        assert_eq!((String::from_utf8(bytes).unwrap().as_str(), at), ("\n[… 95 bytes left out …]\nxxxxx", 110));
        let (bytes, _) = all.since(0);
        assert_eq!(String::from_utf8(bytes).unwrap(), "01234\n[… 100 bytes left out …]\nxxxxx");
    }

    #[test]
    fn a_cut_through_a_character_is_no_error() {
        let all = output(4);
        all.push("äöüäöü".as_bytes()).unwrap();
        assert_eq!(all.text(), "ä\n[… 8 bytes left out …]\nü");
    }

    #[test]
    fn more_than_may_be_written_at_all_is_a_limit() {
        let config = Config::parse(b"[exec]\nmax_output_mib = 1\n").unwrap();
        let hit = HitCell::default();
        let output = OutputBuffer::new(10, Budget::exec(&config.exec, &config.engine), hit.clone(), None);
        output.push(&vec![0; 1 << 20]).unwrap();
        assert_eq!(output.push(b"x").unwrap_err().limit, Limit::Output);
        assert!(hit.get().unwrap().setting.contains("[exec] max_output_mib"));
    }
}
