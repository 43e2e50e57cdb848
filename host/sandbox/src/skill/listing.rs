//! The names of the installed skills. Each step of a run asks for them several times, and they hardly ever change.

use super::file_version::FileVersion;
use kiso_base::home::SkillName;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The names in one directory, read again only when it has changed on disk.
#[derive(Debug, Default)]
pub(super) struct Listing(Mutex<Option<(FileVersion, Arc<[SkillName]>)>>);

impl Listing {
    /// Returns the entries of `dir` that have a name, sorted. The list is empty if the directory does not exist.
    pub(super) fn read_names(&self, dir: &Path, name: impl Fn(&str) -> Option<SkillName>) -> Arc<[SkillName]> {
        let version = FileVersion::read(dir);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, names)) = known.as_ref()
            && version == Some(*of)
        {
            return names.clone();
        }
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names: Vec<SkillName> = entries.filter_map(|entry| name(entry.file_name().to_str()?)).collect();
        names.sort();
        let names: Arc<[SkillName]> = names.into();
        *known = version.map(|version| (version, names.clone()));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_is_seen_however_soon() {
        let dir = tempfile::tempdir().unwrap();
        let (listing, place) = (Listing::default(), dir.path().join("skills"));
        let listed = || {
            let names = listing.read_names(&place, |file| SkillName::parse(file).ok());
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(listed(), [""; 0]);
        fs::create_dir(&place).unwrap();
        for settled in [false, true] {
            for (skill, all) in [("b", vec!["b"]), ("a", vec!["a", "b"])] {
                fs::create_dir(place.join(skill)).unwrap();
                if settled {
                    while FileVersion::read(&place).is_none() {
                        std::thread::yield_now();
                    }
                }
                assert_eq!((listed(), listed()), (all.iter().map(ToString::to_string).collect(), listed()));
            }
            fs::write(place.join("No Skill"), "").unwrap();
            assert_eq!(listed(), ["a", "b"]);
            for skill in ["a", "b"] {
                fs::remove_dir(place.join(skill)).unwrap();
            }
            assert_eq!(listed(), [""; 0]);
        }
    }
}
