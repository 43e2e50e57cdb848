//! What the rules make of messages, outputs and briefs.

mod attached;
mod attacks;
mod fixtures;
mod honesty;
mod judging;
mod newcomer;
mod planning;
