//! Fetches an index and its files. The signature of an index is checked before anything in it is read.

use super::place::SCHEME;
use super::{FORM, IndexError, IndexPlace, IndexedSkill, MAX_COMMANDS, MAX_INDEX, MAX_SKILLS, MAX_TEXT, SkillIndex};
use super::{index_statement, unsigned};
use crate::package::download;
use crate::skill::digest::Digest;
use crate::skill::error::SkillError;
use crate::skill::fetched::FetchedFile;
use crate::skill::loader::MAX_WASM_BYTES;
use crate::skill::oci::{OciReference, RegistryCredentials};
use crate::skill::signature::{AGENT_SKILL, COMPONENT, ENDING, MAX_FILE, PACKAGE, claimed_by};
use crate::skill::web::checked_digest;
use crate::skill::{Skills, source};
use kiso_base::clock::now_ms;
use kiso_base::home::SkillName;
use kiso_base::json;
use kiso_store::store::IndexVersion;
use std::cmp::Ordering;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A skill that an index names.
#[derive(Debug, Clone)]
pub struct FoundSkill {
    pub index: IndexPlace,
    /// The name in the index.
    pub index_name: String,
    pub skill: IndexedSkill,
}

/// If a source belongs to a skill of an index, returns the key and the skill's name.
pub fn is_index_source(source: &str) -> Option<(&str, &str)> {
    source.strip_prefix(SCHEME)?.rsplit_once('/')
}

impl Skills {
    /// The indexes that `config.toml` names.
    pub fn indexes(&self) -> Result<Vec<IndexPlace>, SkillError> {
        let named = self.config().skills.index.iter();
        named.map(|text| IndexPlace::parse(text).map_err(|error| error.to_skill_error("[skills] index"))).collect()
    }

    /// Fetches an index. It must have a valid signature, must not be expired, and must not be older than the last one that was
    /// seen.
    pub async fn read_index(&self, place: &IndexPlace) -> Result<SkillIndex, IndexError> {
        let at = || place.at.clone();
        let bytes = get(&place.at, MAX_INDEX).await.map_err(|why| IndexError::Unreachable { at: at(), why })?;
        let beside = format!("{}.{ENDING}", place.at);
        let signature = get(&beside, MAX_FILE).await.map_err(|why| IndexError::Unsigned { at: at(), why })?;
        let signature = String::from_utf8_lossy(&signature).into_owned();
        let is = claimed_by(&signature).map_err(|error| unsigned(&place.at, &error))?;
        if is != place.key.id {
            let (is, wanted) = (is.to_string(), place.key.id.to_string());
            return Err(IndexError::WrongKey { at: at(), is, wanted });
        }
        let digest = Digest::compute(&bytes).to_string();
        let statement = index_statement(&digest);
        place.key.verify(&statement, &signature).map_err(|error| unsigned(&place.at, &error))?;

        let wrong = |why: String| IndexError::Format { at: at(), why };
        let index: SkillIndex = json::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
        check(&index).map_err(wrong)?;
        let expires: jiff::Timestamp =
            index.expires.parse().map_err(|_| wrong(format!("{:.50?} is no time", index.expires)))?;
        if expires.as_millisecond() < now_ms() {
            return Err(IndexError::Expired { at: at(), expires: index.expires });
        }
        let (name, serial) = (index.name.clone(), index.serial);
        let version = IndexVersion { signer: place.key.text.clone(), name, serial, digest };
        let last = self.0.store.write(move |tx| tx.see_index(&version, now_ms())).await;
        match last.map_err(|error| IndexError::Unreachable { at: at(), why: error.to_string() })? {
            None => Ok(index),
            Some((seen, _)) if seen == serial => Err(IndexError::Changed { at: at(), serial }),
            Some((seen, _)) => Err(IndexError::Stale { at: at(), serial, seen }),
        }
    }

    /// The skills of the indexes that have all of these words in their names or summaries, the newest version of each; and the
    /// errors of indexes that could not be read in time.
    pub async fn search_indexes(
        &self,
        words: &[String],
        within: Option<Duration>,
    ) -> Result<(Vec<FoundSkill>, Vec<IndexError>), SkillError> {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        let end = within.map(|within| Instant::now() + within);
        for place in self.indexes()? {
            let read = match end {
                None => self.read_index(&place).await,
                Some(end) => timeout_at(end, self.read_index(&place)).await.unwrap_or_else(|_| {
                    let why = "it did not come in time".to_owned();
                    Err(IndexError::Unreachable { at: place.at.clone(), why })
                }),
            };
            match read {
                Ok(index) => found.extend(newest(&place, index).into_iter().filter(|found| found.skill.has(words))),
                Err(error) => failed.push(error),
            }
        }
        // A word in the name is a better match than one in the summary.
        let in_name = |found: &FoundSkill| words.iter().any(|word| found.skill.name.contains(&word.to_lowercase()));
        found.sort_by_cached_key(|found| (!in_name(found), found.skill.name.clone()));
        Ok((found, failed))
    }

    /// The newest version of a skill in the one index that has it: in any index of `config.toml`, or in the one at this place.
    pub async fn find_indexed(&self, name: &str, at: Option<&str>) -> Result<FoundSkill, SkillError> {
        let told = |error: IndexError| error.to_skill_error(name);
        let places = self.indexes()?;
        if places.is_empty() {
            return Err(told(IndexError::None));
        }
        let mut found = Vec::new();
        for place in places.into_iter().filter(|place| at.is_none_or(|at| place.at == at)) {
            let index = self.read_index(&place).await.map_err(told)?;
            found.extend(newest(&place, index).into_iter().filter(|found| found.skill.name == name));
        }
        if found.len() > 1 {
            let at = found.iter().map(|found| found.index.at.clone()).collect::<Vec<_>>().join(", ");
            return Err(told(IndexError::Several { name: name.to_owned(), at }));
        }
        found.pop().ok_or_else(|| told(IndexError::Missing { name: name.to_owned() }))
    }

    /// A skill of an index by its source (key and name), and the digest of the wanted version, or the newest.
    pub async fn find_by_source(&self, source: &str, digest: Option<&str>) -> Result<FoundSkill, SkillError> {
        let (key, name) = is_index_source(source).unwrap_or_default();
        let place = self.indexes()?.into_iter().find(|place| place.key.text == key);
        let place = place.ok_or_else(|| {
            let why = "no index in config.toml is signed by the key that it came by".to_owned();
            IndexError::Place { text: source.to_owned(), why }.to_skill_error(name)
        })?;
        let index = self.read_index(&place).await.map_err(|error| error.to_skill_error(name))?;
        let missing = || IndexError::Missing { name: name.to_owned() }.to_skill_error(name);
        match digest {
            None => newest(&place, index).into_iter().find(|found| found.skill.name == name).ok_or_else(missing),
            Some(digest) => {
                let index_name = index.name;
                let skill = index.skills.into_iter().find(|skill| skill.name == name && skill.sha256 == digest);
                skill.map(|skill| FoundSkill { index: place, index_name, skill }).ok_or_else(missing)
            }
        }
    }

    /// Fetches the file of an index's skill. Its digest must be that of the entry.
    pub async fn fetch_indexed(
        &self,
        found: &FoundSkill,
        who: &RegistryCredentials,
    ) -> Result<FetchedFile, SkillError> {
        let FoundSkill { index, skill, .. } = found;
        let told = |error: IndexError| error.to_skill_error(&skill.name);
        let place = index.resolve(&skill.place).map_err(told)?;
        let bytes = match OciReference::is_one(&place) {
            true => {
                let reference = OciReference::parse(&place);
                let reference = reference
                    .map_err(|error| told(IndexError::Format { at: index.at.clone(), why: error.to_string() }))?;
                let pulled = self.pull(&reference, who).await?;
                std::fs::read(&pulled.file).map_err(|error| SkillError::host(&skill.name, error))?
            }
            false => {
                let max = skill.size.min(MAX_WASM_BYTES);
                get(&place, max).await.map_err(|why| told(IndexError::Unreachable { at: place.clone(), why }))?
            }
        };
        let is = Digest::compute(&bytes).to_string();
        if is != skill.sha256 {
            return Err(told(IndexError::Digest { what: place, wanted: skill.sha256.clone(), is }));
        }
        let ending = if skill.kind == COMPONENT { "wasm" } else { "zip" };
        let source = index.source(&skill.name);
        self.keep_fetched(
            &format!("{}.{ending}", skill.name),
            &bytes,
            (source.clone(), source),
            skill.signature.clone(),
        )
    }
}

/// The newest version of each skill.
fn newest(place: &IndexPlace, index: SkillIndex) -> Vec<FoundSkill> {
    let mut found: Vec<FoundSkill> = Vec::new();
    for skill in index.skills {
        match found.iter_mut().find(|known| known.skill.name == skill.name) {
            Some(known) if source::compare(&skill.version, &known.skill.version) == Ordering::Greater => {
                known.skill = skill;
            }
            Some(_) => {}
            None => found.push(FoundSkill { index: place.clone(), index_name: index.name.clone(), skill }),
        }
    }
    found
}

/// Checks an index whose signature is valid: its maker can make mistakes, too.
fn check(index: &SkillIndex) -> Result<(), String> {
    if index.form != FORM {
        return Err(format!("it has form {}, and this kiso reads {FORM}; update kiso", index.form));
    }
    SkillName::parse(&index.name).map_err(|error| error.to_string())?;
    if i64::try_from(index.serial).is_err() {
        return Err(format!("its number {} is too large", index.serial));
    }
    if index.skills.len() > MAX_SKILLS {
        return Err(format!("it has more than {MAX_SKILLS} skills"));
    }
    for skill in &index.skills {
        let IndexedSkill { name, version, kind, summary, license, .. } = skill;
        SkillName::parse(name).map_err(|error| error.to_string())?;
        if ![COMPONENT, AGENT_SKILL, PACKAGE].contains(&kind.as_str()) {
            return Err(format!("{name} has the unknown kind {kind:.50?}"));
        }
        checked_digest(&skill.sha256).map_err(|error| format!("{name}: {error}"))?;
        let texts = [version, summary].into_iter().chain(license);
        if skill.commands.len() > MAX_COMMANDS || skill.commands.iter().any(|name| name.len() > MAX_TEXT) {
            return Err(format!("{name} has more than {MAX_COMMANDS} commands"));
        }
        if texts.into_iter().any(|text| text.chars().count() > MAX_TEXT) {
            return Err(format!("{name} has a text of more than {MAX_TEXT} characters"));
        }
    }
    Ok(())
}

/// The bytes of a file or an address, at most `max`.
async fn get(at: &str, max: u64) -> Result<Vec<u8>, String> {
    if !Path::new(at).is_absolute() {
        return download(at, max, |_, _| {}).await.map_err(|error| error.to_string());
    }
    let at = at.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        if !std::fs::metadata(&at).map_err(|error| error.to_string())?.is_file() {
            return Err("it is not a file".to_owned());
        }
        let read = std::fs::File::open(&at).and_then(|file| file.take(max + 1).read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        if bytes.len() as u64 > max {
            return Err(format!("it has more than {max} bytes"));
        }
        Ok(bytes)
    });
    read.await.unwrap_or_else(|panic| Err(panic.to_string()))
}
