//! Differences of a subagent's run: no person is watching.

use kiso_base::role::Role;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::silent::is_silent;

/// Appended to the prompt of roles that decide the text for the user.
const NOTE: &str = "\n\nYou work as a subagent: the message was sent by another conversation, by the schedule or by a hook, nobody reads along, \
                    and nobody answers questions. Do what it asks for and end with what its sender has to know. If there is \
                    nothing that anybody has to know, the whole answer is {\"silent\": true}.";

/// Returns the note for this role.
pub(super) fn note(role: Role) -> &'static str {
    if role.declaration().speaks { NOTE } else { "" }
}

/// Returns whether the reply of a subagent is sent to its receiving session: unless the reply is silent, or the subagent was
/// cancelled.
pub(super) fn is_told(outcome: &Outcome) -> bool {
    outcome.ending != Ending::Cancelled && !is_silent(&outcome.reply)
}
