//! The branches of an imported session.

use std::collections::{HashMap, HashSet};

use kiso_base::home::SessionName;
use kiso_store::store::{MAX_BRANCHES, MessageRole, OldBranch, OldMessage, StoreError, Tx};

/// The branches in a file, with the message numbers of the file.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub(super) in_use: i64,
    /// Branches of messages; those of the first branch are not listed.
    pub(super) of_messages: HashMap<i64, i64>,
    all: Vec<OldBranch>,
}

impl Branches {
    /// Adds a branch whose messages were read before, in the order of their numbers.
    pub(super) fn add(&mut self, branch: OldBranch, messages: &[(i64, OldMessage)]) -> Result<(), String> {
        let OldBranch { id, parent, first } = branch;
        let at = messages.binary_search_by_key(&first, |(id, _)| *id);
        let is_answered = at.is_ok_and(|at| messages[at].1.role == MessageRole::User && messages[at].1.run.is_some());
        let of = |message: i64| self.of_messages.get(&message).copied().unwrap_or(0);
        if of(id) != id || id <= 0 {
            return Err(format!("branch {id} does not begin with a message of its own"));
        }
        if self.all.last().is_some_and(|last| last.id >= id) {
            return Err(format!("branch {id} does not come after the one before it"));
        }
        if parent != 0 && !self.all.iter().any(|known| known.id == parent) {
            return Err(format!("branch {id} leaves the branch {parent}, which has no line before it"));
        }
        if first >= id || of(first) != parent || !is_answered {
            return Err(format!(
                "branch {id} replaces the message {first}, which is not a user's message of branch {parent} that was answered"
            ));
        }
        if self.all.len() >= MAX_BRANCHES as usize {
            return Err(format!("there are more than {MAX_BRANCHES} branches"));
        }
        self.all.push(branch);
        Ok(())
    }

    /// Checks that all data belongs to a branch with a line. `breaks` are the branches of segments.
    pub(super) fn check(&self, breaks: impl Iterator<Item = i64>) -> Result<(), String> {
        let known: HashSet<i64> = self.all.iter().map(|branch| branch.id).chain([0]).collect();
        let mut of = self.of_messages.values().copied().chain(breaks).chain([self.in_use]);
        match of.find(|branch| !known.contains(branch)) {
            Some(branch) => Err(format!("there is no line of branch {branch}")),
            None => Ok(()),
        }
    }

    /// Stores the branches. `place` returns the number in this store of a message of the file.
    pub(super) fn keep(
        &self,
        tx: &Tx<'_>,
        session: &SessionName,
        place: &dyn Fn(i64) -> i64,
        breaks: impl Iterator<Item = (i64, i64)>,
    ) -> Result<(), StoreError> {
        if self.all.is_empty() {
            return Ok(());
        }
        let number = |branch: i64| if branch == 0 { 0 } else { place(branch) };
        let all = self.all.iter().map(|OldBranch { id, parent, first }| OldBranch {
            id: place(*id),
            parent: number(*parent),
            first: place(*first),
        });
        let of_messages: Vec<_> =
            self.of_messages.iter().map(|(message, branch)| (place(*message), number(*branch))).collect();
        let of_breaks: Vec<_> = breaks.map(|(after, branch)| (after, number(branch))).collect();
        tx.import_branches(session, &all.collect::<Vec<_>>(), &of_messages, &of_breaks, number(self.in_use))
    }
}
