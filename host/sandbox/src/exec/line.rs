//! Command lines of tasks and calls.

use super::{Channel, Line, Scratch};
use crate::skill::Caller;
use kiso_plan::plan::CallerScope;
use std::sync::Arc;

impl<'a> Line<'a> {
    /// The command line of a task or a call.
    pub fn for_caller(source: &'a str, caller: &Caller<'a>, role: CallerScope, scratch: &'a Scratch) -> Line<'a> {
        Line {
            source,
            session: caller.session,
            role,
            shared: caller.shared,
            locale: caller.locale,
            secrets: caller.secrets,
            stdin: Channel::Null,
            args: Vec::new(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            scratch,
            transaction: caller.transaction.cloned(),
            accepted: caller.accepted.map(Arc::from),
            permit: caller.permit.cloned().unwrap_or_default(),
            network: caller.network.cloned().unwrap_or_default(),
        }
    }
}
