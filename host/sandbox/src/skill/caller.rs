//! The caller of a skill or a command line, and its context.

use crate::effect::network::Network;
use crate::effect::sink::Permit;
use crate::effect::undo::Transaction;
use kiso_base::home::SessionName;
use kiso_plan::approval::CardAccess;
use kiso_store::secret::Secrets;
use std::sync::Arc;

/// The caller, and its session.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    pub session: &'a SessionName,
    /// BCP 47 tag, such as "en".
    pub locale: &'a str,
    /// The run's secrets; environment secrets are found through it too.
    pub secrets: &'a Secrets,
    /// Whether it sees the files that all sessions share.
    pub shared: bool,
    /// The transaction that the call belongs to, if it can be undone.
    pub transaction: Option<&'a Arc<Transaction>>,
    /// The access that a person has approved for this call; without it, nothing is allowed that needs approval.
    pub accepted: Option<&'a [CardAccess]>,
    /// The call's effects outside of the sandbox that the rules of labels allow; without it, a person makes the call by hand.
    pub permit: Option<&'a Permit>,
    /// The network of a command line, or of a bundled skill beside its grant; without it, none.
    pub network: Option<&'a Network>,
}

impl<'a> Caller<'a> {
    /// A call by hand: it belongs to no transaction, and nothing was approved for it.
    pub fn by_hand(session: &'a SessionName, secrets: &'a Secrets) -> Self {
        Self {
            session,
            locale: "en",
            secrets,
            shared: true,
            transaction: None,
            accepted: None,
            permit: None,
            network: None,
        }
    }
}
