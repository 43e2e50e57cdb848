//! What the rules make of messages, outputs and briefs.

mod fixtures;
mod judging;
mod planning;
