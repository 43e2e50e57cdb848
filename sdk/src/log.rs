//! Lines for the trace of the run; at most 1,000 a call, 8 KiB each.

use crate::bindings::kiso::skill::log::write;

/// Something that went wrong.
pub fn error(message: impl AsRef<str>) {
    write("error", message.as_ref());
}

/// Something that looks wrong but did not stop the call.
pub fn warn(message: impl AsRef<str>) {
    write("warn", message.as_ref());
}

/// A step of the skill.
pub fn info(message: impl AsRef<str>) {
    write("info", message.as_ref());
}

/// A detail for the skill's author only.
pub fn debug(message: impl AsRef<str>) {
    write("debug", message.as_ref());
}
