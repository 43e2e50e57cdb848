//! The packages of kiso as entries of an index. They are part of the program, so every home has them, and they need no signature.

use super::{IndexedSkill, PACKAGE};
use crate::package::{self, Package, PackageFolder};
use crate::skill::{InstalledSkill, Skills};
use std::sync::Arc;

/// The name of this index, which also stands for its address.
pub const CATALOGUE: &str = "kiso";
pub const BUILT_IN: &str = "built-in";

impl Skills {
    /// Returns the packages of kiso that have all of these words in their name, their commands or their summary.
    pub fn catalogue(&self, words: &[String]) -> Vec<IndexedSkill> {
        let entries = package::bundled().iter().map(entry);
        entries.filter(|entry| entry.has(words)).collect()
    }

    /// Returns the installed skill of a package of kiso; `None` if it is not installed. One that an older kiso installed may have
    /// another name.
    pub fn installed_package(&self, package: &Package) -> Option<Arc<InstalledSkill>> {
        let source = package.source();
        let mut all: Vec<_> =
            self.list().into_iter().flatten().filter(|skill| skill.source() == Some(&source)).collect();
        all.sort_by_key(|skill| skill.name().as_str() != package.name);
        all.into_iter().next()
    }
}

fn entry(folder: &PackageFolder) -> IndexedSkill {
    let Package { name, version, spec } = &*folder.package;
    IndexedSkill {
        name: name.clone(),
        version: version.clone(),
        kind: PACKAGE.to_owned(),
        summary: folder.summary.clone(),
        license: Some(spec.licence.clone()),
        commands: spec.commands.clone(),
        place: spec.component.url.clone(),
        sha256: spec.component.sha256.clone(),
        size: folder.package.fetched_bytes(),
        signature: None,
    }
}
