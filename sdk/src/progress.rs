/// Tells the user how far the call has come: `done` from 0 to 1, or `None` when unknown, and a few words.
pub fn progress(done: impl Into<Option<f64>>, note: impl AsRef<str>) {
    crate::bindings::kiso::skill::progress::report(done.into(), note.as_ref());
}
