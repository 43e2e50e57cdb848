//! What a session's workspace holds, what guests may add to it, and where.

mod charged;
mod control;
mod directory_use;
mod files;
mod home_space;
mod labelled;
mod measure;
mod note;
mod quota;
mod stream;
mod structure;
mod undoable;

pub use self::charged::add_to_linker;
pub use self::control::{CommandRequests, ControlFile};
pub use self::directory_use::{DirectoryUse, READ, WRITE};
pub use self::files::ChargedFiles;
pub use self::home_space::{HomeSpace, SessionSpace};
pub use self::note::{NoteError, media_type, note};
pub use self::quota::{Charge, Quota, Room, SpaceUsage};
pub use self::structure::{DirId, Roots};
pub use self::undoable::target;
