//! Tests of plans, verdicts and replies.

mod attached;
mod attacks;
mod fixtures;
mod honesty;
mod judging;
mod newcomer;
mod planning;
