//! Where a command's name leads to along `PATH`.
//!
//! The bundled commands and the installed skills are not files. They answer in the directories that other systems keep
//! commands in, so that `PATH` decides about them as it does everywhere; any other directory of `PATH` holds scripts.

use std::fs;

use crate::bindings::kiso::exec::spawn;
use crate::shell::Shell;

/// Where the commands answer. Nothing is there to look at, but scripts name it.
const COMMANDS: [&str; 6] = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"];

/// The path that `command -p` searches.
const STANDARD: &str = "/usr/bin:/bin";

#[derive(Debug)]
pub enum Program {
    /// Of the host, under this path.
    Component(String),
    /// A file.
    Script(String),
}

impl Program {
    pub fn path(self) -> String {
        match self {
            Program::Component(path) | Program::Script(path) => path,
        }
    }
}

/// The name of the command that a path in one of these directories means.
pub fn command_of(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    (COMMANDS.contains(&directory) && !name.is_empty()).then_some(name)
}

/// Whether the host starts something of this name.
pub fn is_command(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && (matches!(name, "sh" | "bash" | "dash") || spawn::exists(name))
}

/// Every name that the host starts, sorted.
pub fn commands() -> Vec<String> {
    spawn::names()
}

impl Shell {
    /// All that a name without a slash means, in the order of `PATH`. No directory is looked into before it is wanted: whoever knows what
    /// stands there has read something of the session.
    pub fn programs<'a>(&'a self, name: &'a str, standard: bool) -> impl Iterator<Item = Program> + 'a {
        let places = if standard { STANDARD.to_owned() } else { self.scalar("PATH").unwrap_or_default() };
        let (has_standard, is_name) = (has_standard(&places), !name.is_empty() && !name.contains('/'));
        let program = move |place: &str| {
            let place = if place.len() > 1 { place.trim_end_matches('/') } else { place };
            if COMMANDS.contains(&place) {
                // Of several such directories only the first two are the same one, as on most systems.
                let is_there = matches!(place, "/usr/bin" | "/bin") || !has_standard;
                return (is_there && is_command(name)).then(|| Program::Component(format!("{place}/{name}")));
            }
            self.file_in(place, name).map(Program::Script)
        };
        let places: Vec<String> = places.split(':').filter(|_| is_name).map(str::to_owned).collect();
        places.into_iter().filter_map(move |place| program(&place))
    }

    /// The file that `source` reads: along `PATH`, and then in the working directory.
    pub fn sourced(&self, name: &str) -> String {
        if name.contains('/') {
            return name.to_owned();
        }
        let places = self.scalar("PATH").unwrap_or_default();
        places.split(':').find_map(|place| self.file_in(place, name)).unwrap_or_else(|| name.to_owned())
    }

    fn file_in(&self, place: &str, name: &str) -> Option<String> {
        let path = match place {
            "" => format!("./{name}"),
            "/" => format!("/{name}"),
            place => format!("{place}/{name}"),
        };
        fs::metadata(self.absolute(&path)).is_ok_and(|file| file.is_file()).then_some(path)
    }
}

fn has_standard(places: &str) -> bool {
    places.split(':').any(|place| matches!(place.trim_end_matches('/'), "/usr/bin" | "/bin"))
}
