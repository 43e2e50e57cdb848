//! Conflicts that prevent undoing or repeating an acceptance.

use super::super::Overlay;
use super::journal::AcceptLog;
use std::collections::BTreeSet;
use std::io;

impl Overlay {
    /// The reasons why an acceptance cannot be accepted or taken back, a line each.
    pub(in super::super) fn acceptance_conflicts(&self, id: u64, accepted: bool) -> io::Result<Vec<String>> {
        let path = self.accept_log(id);
        match if path.exists() { AcceptLog::read(&path)? } else { None } {
            Some(log) if log.state.is_some() && !accepted => self.changed_since(&log),
            Some(log) if log.state.is_some() => self.changed_before(&log),
            _ => Ok(vec!["what was there is not kept any more".to_owned()]),
        }
    }

    /// Paths that somebody has changed since an acceptance was taken back, a line each.
    fn changed_before(&self, log: &AcceptLog) -> io::Result<Vec<String>> {
        let (mut changed, mut seen) = (Vec::new(), BTreeSet::new());
        for step in &log.steps {
            let path = step.path();
            // An earlier step will change this path, so it cannot be compared yet.
            if path.with_parents().any(|path| seen.contains(&path)) {
                continue;
            }
            let is_same = match (step.before(), self.state_now(path)?) {
                (None, None) => true,
                (Some(before), Some(now)) => now.is_same(&before),
                _ => false,
            };
            if !is_same {
                changed.push(format!("{path} was changed since"));
            }
            seen.insert(path.clone());
        }
        Ok(changed)
    }
}
