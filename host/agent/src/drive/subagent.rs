//! What is different about the run of a subagent: nobody reads along.

use kiso_base::role::Role;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::silent::is_silent;

/// What stands behind the prompt of those roles that decide what is said.
const NOTE: &str = "\n\nYou work as a subagent: the message was sent by another conversation, by the schedule or by a hook, nobody reads along, \
                    and nobody answers questions. Do what it asks for and end with what its sender has to know. If there is \
                    nothing that anybody has to know, the whole answer is {\"silent\": true}.";

/// For the model of this role.
pub(super) fn note(role: Role) -> &'static str {
    if role.declaration().speaks { NOTE } else { "" }
}

/// Whether the session that a subagent's reply is meant for is told it: unless the reply is silent, or somebody
/// stopped the subagent, who then knows.
pub(super) fn is_told(outcome: &Outcome) -> bool {
    outcome.ending != Ending::Cancelled && !is_silent(&outcome.reply)
}
