//! The author of files that all sessions share.

use kiso_plan::label::{Integrity, Label};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::label::LabelId;

/// Returns the label for files that a caller writes to the shared files. A token of scope `chat` may belong to another person.
pub(crate) fn author(caller: CallerScope, by_admin: Label) -> LabelId {
    LabelId::from_label(&match caller {
        CallerScope::Admin => by_admin,
        CallerScope::User => Label { integrity: Integrity::Person, ..Label::session() },
    })
}
