//! Conversations with the roles of a run. A role that is asked again gets the same bytes, its answer after them, and the new
//! parts at the end, so that its model need only read those. After a crash, one prompt must be read completely.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clean::clean_turn;
use crate::context::{PieceHistory, without_marks};
use kiso_base::role::Role;
use kiso_llm::{Request, Turn};
use kiso_store::secret::Secrets;

/// Roles that are asked again in a run about their earlier answers. The actor has its lane for that.
const ASKED_AGAIN: [Role; 3] = [Role::Planner, Role::Reviewer, Role::Reasoner];

/// The conversations of a run with its roles.
#[derive(Debug, Default)]
pub(super) struct Dialogs(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    answered: HashMap<Role, Dialog>,
    /// The last request without an answer.
    sent: Option<(Role, Dialog)>,
}

#[derive(Debug, Clone)]
struct Dialog {
    user: String,
    turns: Vec<Turn>,
    told: PieceHistory,
}

impl Dialogs {
    /// Returns `request` as the continuation of the role's conversation; `None` if there is none.
    pub(super) fn next(&self, request: &Request, secrets: &Secrets, boundary: &str) -> Option<Request> {
        let Dialog { user, turns, told } = self.open().answered.get(&request.role)?.clone();
        // A secret may not have been known as one at the time of the earlier turns.
        let turns = turns.into_iter().map(|turn| clean_turn(secrets, turn));
        let news = Turn::Note(told.news(&request.pieces, boundary));
        let turns = turns.chain([news]).collect();
        Some(Request { user: secrets.redact(&user), turns, ..request.clone() })
    }

    /// Records a request that is about to be sent.
    pub(super) fn sent(&self, request: &Request, boundary: &str) {
        let mut open = self.open();
        open.sent = ASKED_AGAIN.contains(&request.role).then(|| {
            let told = PieceHistory::new(&request.pieces, boundary);
            (request.role, Dialog { user: request.user.clone(), turns: request.turns.clone(), told })
        });
    }

    /// Records the answer to the last request; `text` contains no secrets.
    pub(super) fn answered(&self, text: &str, boundary: &str) {
        let mut open = self.open();
        if let Some((role, mut dialog)) = mem::take(&mut open.sent) {
            dialog.turns.push(Turn::Assistant { text: without_marks(text, boundary), calls: Vec::new() });
            open.answered.insert(role, dialog);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
