//! What a session's workspace holds, what guests may add to it, and where.

mod charged;
mod home_space;
mod measure;
mod note;
mod quota;
mod structure;

pub use self::charged::{ChargedFiles, add_to_linker};
pub use self::home_space::{HomeSpace, SessionSpace};
pub use self::note::{NoteError, media_type, note};
pub use self::quota::{Charge, Quota, Room, SpaceUsage};
pub use self::structure::{DirId, Roots};
