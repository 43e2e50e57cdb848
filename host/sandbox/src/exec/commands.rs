//! The commands: those of the bundled components, and installed skills of the command shape.

use super::channel::Channel;
use super::dirs::Dirs;
use super::embedded::COREUTILS_NAMES;
use super::hint;
use super::process::{CRASHED, ProcessSpec};
use super::streams::Stdio;
use crate::effect::label::LabelCell;
use crate::effect::network::Network;
use crate::effect::sink::Permit;
use crate::effect::undo::Transaction;
use crate::engine::limits::LimitHit;
use crate::package::{self, Package};
use crate::skill::sandbox::CommandRequests;
use crate::skill::{Caller, CommandStreams, InstalledSkill, Shape, SkillError, Skills, near_names};
use kiso_base::home::{Home, PROJECT, SessionName};
use kiso_plan::approval::CardAccess;
use kiso_plan::code::ErrorCode;
use kiso_store::secret::Secrets;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The implementation of a command.
#[derive(Debug, Clone)]
pub(super) enum Program {
    /// A separate shell, started by a command such as `xargs sh -c`.
    Shell,
    Coreutils,
    Curl,
    Image,
    Js,
    Skill(Arc<InstalledSkill>),
    /// A file of the session, by its absolute path.
    File(String),
}

/// The commands that a task may start.
#[derive(Debug)]
pub(super) struct Commands {
    pub home: Home,
    pub skills: Skills,
    pub session: SessionName,
    pub locale: String,
    pub secrets: Secrets,
    /// The transaction that the line belongs to, if it can be undone.
    pub transaction: Option<Arc<Transaction>>,
    /// The access that a person has approved for the skills that the line calls.
    pub accepted: Option<Arc<[CardAccess]>>,
    /// Skills of this task that run as commands.
    pub running: AtomicUsize,
    /// Whether any such skill was started.
    pub skill_ran: AtomicBool,
    /// Effects outside of the sandbox that the line is allowed.
    pub permit: Permit,
    /// The network that the line may use.
    pub network: Network,
}

/// The names by which scripts start a shell.
const SHELLS: [&str; 3] = ["bash", "dash", "sh"];

/// The commands of `skills/curl`.
const CURL_NAMES: [&str; 2] = ["curl", "wget"];

/// The commands of `skills/image`.
const IMAGE_NAMES: [&str; 7] = ["convert", "exiftool", "identify", "image", "magick", "mogrify", "montage"];

/// The commands of `skills/js`.
const JS_NAMES: [&str; 5] = ["js", "node", "nodejs", "npm", "npx"];

/// The bundled skill with more command names than its own.
const DOCUMENT: &str = "document";

/// The names of that skill's commands.
const DOCUMENT_NAMES: [&str; 12] = [
    "csv2xlsx",
    "docx2txt",
    "libreoffice",
    "pandoc",
    "pdfinfo",
    "pdftoppm",
    "pdftotext",
    "soffice",
    "ssconvert",
    "weasyprint",
    "wkhtmltopdf",
    "xlsx2csv",
];

/// The builtins of the shell and those that only bash has, which take precedence over all commands. A test compares the list with the
/// shell's.
const BUILTINS: [&str; 60] = [
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
    ".",
    ":",
];

/// Removes the directory that some people write before a name: `/bin/ls`, `/usr/bin/env`.
pub(super) fn plain_name(name: &str) -> &str {
    ["/usr/local/bin/", "/usr/bin/", "/bin/"].iter().find_map(|dir| name.strip_prefix(dir)).unwrap_or(name)
}

fn is_coreutils(name: &str) -> bool {
    COREUTILS_NAMES.binary_search(&name).is_ok()
}

/// The names of commands that do not belong to `coreutils`.
#[cfg(test)]
pub(super) fn further_names() -> Vec<&'static str> {
    [&CURL_NAMES[..], &IMAGE_NAMES[..], &JS_NAMES[..], &DOCUMENT_NAMES[..]].concat()
}

/// Every name that can be started, sorted.
pub(super) fn names(skills: &Skills) -> Vec<String> {
    let commands = skills.list().into_iter().flatten().filter(|skill| skill.shape == Shape::Command);
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let all = |skill: Arc<InstalledSkill>| match skill.package() {
        Some(package) => package.spec.commands.clone(),
        None if skill.name().as_str() == DOCUMENT => owned(&[&DOCUMENT_NAMES[..], &[DOCUMENT]].concat()),
        None => vec![skill.name().to_string()],
    };
    let mut names: Vec<String> = commands.flat_map(all).collect();
    names.extend(COREUTILS_NAMES.iter().map(|name| (*name).to_owned()));
    names.extend(CURL_NAMES.map(str::to_owned));
    names.extend(IMAGE_NAMES.map(str::to_owned));
    names.extend(JS_NAMES.map(str::to_owned));
    names.extend(SHELLS.map(str::to_owned));
    names.sort();
    names.dedup();
    names
}

/// The installed package that has this command. Packages of kiso take precedence; among those, the last in the list.
pub fn installed_package(skills: &Skills, name: &str) -> Option<Arc<InstalledSkill>> {
    let has_command = |skill: &Arc<InstalledSkill>| skill.package().is_some_and(|package| package.has_command(name));
    let known = package::bundled().iter().rev().filter(|folder| folder.package.has_command(name));
    let mut installed = known.filter_map(|folder| skills.find(&folder.package.name).ok());
    let of_others = || skills.list().into_iter().flatten().find(|skill| has_command(skill) && !skill.is_of_kiso());
    installed.find(|skill| has_command(skill) && skill.is_of_kiso()).or_else(of_others)
}

/// The reason why a package of somebody else cannot have its commands: one of them belongs to kiso or to another skill.
pub fn refuse_commands(skills: &Skills, package: &Package) -> Option<String> {
    let skill_of = |name: &str| skills.list().into_iter().flatten().find(|skill| skill.name().as_str() == name);
    package.spec.commands.iter().find_map(|command| {
        let name = command.as_str();
        let of_kiso = SHELLS.contains(&name)
            || BUILTINS.contains(&name)
            || is_coreutils(name)
            || [&CURL_NAMES[..], &IMAGE_NAMES, &JS_NAMES, &DOCUMENT_NAMES].iter().any(|names| names.contains(&name))
            || crate::skill::bundled_names().any(|bundled| bundled == name);
        if of_kiso {
            return Some(format!("`{name}` is a command of kiso, which no package can replace"));
        }
        if let Some(folder) = package::bundled().iter().find(|folder| folder.package.has_command(name)) {
            let of = &folder.package.name;
            return Some(format!("`{name}` is a command of kiso's package {of}, which no other package can replace"));
        }
        let other = installed_package(skills, name).or_else(|| skill_of(name));
        let other = other.filter(|skill| skill.name().as_str() != package.name)?;
        Some(format!("`{name}` is a command of {}; `kiso skill remove {0}` makes room for it", other.name()))
    })
}

/// Whether a skill is a command by its own name. A package that an older kiso installed has no table in its manifest and cannot start.
fn is_command(skill: &InstalledSkill) -> bool {
    let is_old_package = skill.source().is_some_and(|source| package::find_source(source).is_some());
    skill.shape == Shape::Command && skill.package().is_none() && !is_old_package
}

impl Commands {
    /// Whether a skill was run as a command.
    pub(super) fn has_run_skill(&self) -> bool {
        self.skill_ran.load(Relaxed)
    }

    /// Returns the implementation of the command of this name.
    pub(super) fn find(&self, name: &str) -> Option<Program> {
        let name = plain_name(name);
        if SHELLS.contains(&name) {
            return Some(Program::Shell);
        }
        if is_coreutils(name) {
            return Some(Program::Coreutils);
        }
        if CURL_NAMES.contains(&name) {
            return Some(Program::Curl);
        }
        if IMAGE_NAMES.contains(&name) {
            return Some(Program::Image);
        }
        if JS_NAMES.contains(&name) {
            return Some(Program::Js);
        }
        let installed = || self.skills.find(name).ok().filter(|skill| is_command(skill));
        let document = || self.skills.find(DOCUMENT).ok().filter(|_| DOCUMENT_NAMES.contains(&name));
        installed_package(&self.skills, name).or_else(installed).or_else(document).map(Program::Skill)
    }

    /// Every name, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        names(&self.skills)
    }

    /// Returns a hint for a command that does not exist: an alternative, or similar names.
    pub(super) fn instead(&self, name: &str) -> Option<String> {
        let is_there = |wanted: &str| self.find(wanted).is_some() || self.skills.find(wanted).is_ok();
        if let Some(hint) = hint::instead(name, is_there) {
            return Some(hint.to_owned());
        }
        if let Some(folder) = package::bundled().iter().find(|folder| folder.package.has_command(name)) {
            let package = &folder.package.name;
            return Some(format!(
                "it comes with {package}, which an administrator adds with `kiso skill add {package}`"
            ));
        }
        let names = self.names();
        let near = near_names(name, names.iter().map(String::as_str));
        (!near.is_empty()).then(|| format!("did you mean {}?", near.join(", ")))
    }

    /// Runs an installed skill as a command: with words as arguments and the line's streams, within its own grant.
    pub(super) async fn run_skill(
        &self,
        skill: &Arc<InstalledSkill>,
        given: ProcessSpec,
        dirs: &Dirs,
        (stderr, label): (&Channel, &LabelCell),
        requests: Box<dyn CommandRequests>,
    ) -> Result<u8, LimitHit> {
        let transaction = self.transaction.as_ref();
        let (accepted, locale) = (self.accepted.as_deref(), self.locale.as_str());
        let permit = self.permit.of_process(skill.name().as_str(), label, hosts_named(&given.argv));
        let caller = Caller {
            session: &self.session,
            locale,
            secrets: &self.secrets,
            shared: dirs.shared().is_some(),
            transaction,
            accepted,
            permit: Some(&permit),
            network: Some(&self.network),
        };
        let (mut argv, mut env, mut support) = (given.argv.clone(), given.env.clone(), Vec::new());
        let (mut goes_on, mut skills) = (false, dirs.skills().map(Path::to_owned));
        // Other skills may see the files of one session only, and may have been granted hosts for those.
        let sees_shared = skill.is_of_kiso();
        let mut shared = dirs.shared().filter(|_| sees_shared).map(|layer| (layer.to_owned(), true));
        let mut folders = dirs.folders();
        let published = dirs.published().clone();
        let (mut asks, mut unkept) = (false, None);
        if let Some(package) = skill.package() {
            asks = package.asks_for_commands() && skill.is_of_kiso();
            // A kept interpreter knows only the directories that it was kept with. One folder in its usual place is among them.
            let are_known = folders.len() <= 1 && folders.iter().all(|(at, ..)| at == PROJECT);
            unkept = package.start(&mut argv, &mut env, &given.cwd);
            goes_on = unkept.is_some() && are_known;
            if let (Some(words), false) = (&unkept, are_known) {
                argv.clone_from(words);
            }
            let files = package.mounts(&self.home).and_then(|files| {
                if goes_on && skills.is_none() {
                    skills = Some(package.empty_dir(&self.home)?);
                }
                if goes_on && shared.is_none() {
                    shared = Some((package.empty_dir(&self.home)?, false));
                }
                if goes_on && folders.is_empty() {
                    folders.push((PROJECT.to_owned(), package.empty_dir(&self.home)?, false));
                }
                Ok(files)
            });
            match files {
                Ok(files) => support = files,
                Err(error) => {
                    let _ =
                        stderr.write(format!("{}: its files cannot be used: {error}\n", skill.name()).as_bytes()).await;
                    return Ok(126);
                }
            }
        }
        if !goes_on {
            // This contains only the device that every guest can open. A kept interpreter knows its directories by number.
            let dev = self.home.exec_root(std::iter::empty());
            if std::fs::create_dir_all(&dev).is_ok() {
                support.push((dev, "/dev".to_owned()));
            }
        }
        let streams = CommandStreams {
            argv,
            env,
            support,
            cwd: given.cwd.clone(),
            tmp: dirs.tmp().to_owned(),
            skills: skills.map(|skills| (skills, published)),
            folders,
            shared,
            overlays: dirs.overlays().clone(),
            requests: asks.then_some(requests),
            goes_on,
            unkept,
            stdin: Stdio::new(given.channel(0), label.clone()),
            stdout: Stdio::new(given.channel(1), label.clone()),
            stderr: Stdio::new(given.channel(2), label.clone()),
        };
        // The first one may wait for others to end. If others of the same line waited too, each could wait for the other.
        let first = self.running.fetch_add(1, Relaxed) == 0;
        self.skill_ran.store(true, Relaxed);
        let _counted = Counted(&self.running);
        let ran = self.skills.run_as_command(skill, streams, caller, first).await;
        self.permit.take_in(&permit);
        match ran {
            Ok(ended) => {
                if let Some(refused) = ended.refused {
                    let _ = stderr.write(format!("{}: {refused}\n", skill.name()).as_bytes()).await;
                }
                Ok(ended.code)
            }
            Err(SkillError { limit: Some(hit), .. }) => Err(*hit),
            // As bundled commands report a crash, behind the command's own output.
            Err(SkillError { code: ErrorCode::Trap, skill, message, .. }) => {
                let why = message.strip_prefix("it ").unwrap_or(&message);
                let _ = stderr.write(format!("{skill}: {why}\n").as_bytes()).await;
                Ok(CRASHED)
            }
            Err(error) => {
                let _ = stderr.write(format!("{error}\n").as_bytes()).await;
                Ok(126)
            }
        }
    }
}

/// The hosts of the addresses among a command's words.
pub(super) fn hosts_named(argv: &[String]) -> BTreeSet<String> {
    let host = |word: &String| {
        let uri: http::Uri = word.trim().parse().ok()?;
        uri.scheme()?;
        Some(uri.host()?.to_ascii_lowercase())
    };
    argv.iter().filter_map(host).collect()
}

/// Counts one less when it is dropped, also when a command is killed.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_of_the_shell_is_reserved() {
        let shell = include_str!("../../../../skills/shell/src/builtin/mod.rs");
        let table = shell.split("const BUILTINS").nth(1).and_then(|rest| rest.split("];").next()).unwrap();
        let names: Vec<_> = table.split("(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(names.len() > 40, "{names:?}");
        // No package can have a command of this name.
        let missing: Vec<_> = names.iter().filter(|name| **name != "[" && !BUILTINS.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
