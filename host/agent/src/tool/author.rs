//! Whose words are in the files that all sessions share.

use kiso_plan::label::{Integrity, Label};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::label::LabelId;

/// Whose words the files are that somebody writes to the shared files. A token of scope `chat` is another person's, as far as is known.
pub(crate) fn author(caller: CallerScope, by_admin: Label) -> LabelId {
    LabelId::of(&match caller {
        CallerScope::Admin => by_admin,
        CallerScope::User => Label { integrity: Integrity::Person, ..Label::session() },
    })
}
