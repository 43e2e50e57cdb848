//! The size of a session's workspace, and the rules for what guests may add to it, and where.

mod asked;
mod control;
mod detached;
mod directory_use;
mod entry_operation;
mod files;
mod filesystem;
mod home_space;
mod labelled;
mod listing;
mod measure;
mod note;
mod null;
mod open_listings;
mod overlaid;
mod p3;
mod quota;
mod running;
mod stream;
mod structure;
mod undoable;

pub(crate) use self::control::{CommandRequests, ControlFile};
pub(crate) use self::directory_use::{DirectoryUse, READ, WRITE};
pub(crate) use self::files::{ChargedFiles, DetachedFiles};
pub(crate) use self::filesystem::add_to_linker;
pub(crate) use self::home_space::{HomeSpace, SessionSpace};
pub use self::note::media_type;
pub(crate) use self::note::{NoteError, note};
pub(crate) use self::open_listings::Listings;
pub(crate) use self::overlaid::{OverlayError, from_root};
pub(crate) use self::p3::add_to_linker as add_wasi_0_3_to_linker;
pub use self::quota::{Charge, Quota};
pub(crate) use self::quota::{Room, SpaceUsage};
pub(crate) use self::running::RunningOperations;
pub(crate) use self::structure::{DirId, Root, Roots};
pub(crate) use self::undoable::target;
