use super::*;
pub(super) fn audit(_: &RunSpec, _: &[Event]) {}
