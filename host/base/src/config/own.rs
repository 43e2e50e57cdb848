//! Checks that depend on this machine: settings that would expose kiso's own home or port, and the file of certificates.

use super::Config;
use super::mcp::McpPlace;
use super::parse::{Problem, problem};
use crate::home::{FolderRefusal, Home, SessionFolder};
use crate::net::roots::trust_file;
use std::path::Path;

/// Checks the tables of a configuration that was parsed from `text`.
pub(super) fn check(config: &Config, text: &str, home: &Home) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut refuse = |table: &str, name: &str, key: &str, message: String| {
        problems.push(problem(text, place(text, table, name, key), message));
    };
    for mount in config.mounts.iter().filter(|mount| home.overlaps(&mount.path)) {
        let path = mount.path.display();
        refuse(
            "exec.mounts",
            &mount.at,
            "path",
            format!("exec.mounts.{:?}: {path} has kiso's own home in it, or is in it", mount.at),
        );
    }
    for folder in &config.folders {
        // A missing directory is reported when somebody opens it: the disk may be connected later.
        let at = format!("/{}", folder.name);
        match SessionFolder::new(home, &folder.path, &at, folder.force) {
            Ok(_) | Err(FolderRefusal::Missing(_)) => {}
            Err(refusal @ FolderRefusal::Sensitive { .. }) => {
                let why = refusal.without_advice();
                let message = format!("folders.{}.path: {why}; to list it anyway, add force = true", folder.name);
                refuse("folders", &folder.name, "path", message);
            }
            Err(refusal) => refuse("folders", &folder.name, "path", format!("folders.{}.path: {refusal}", folder.name)),
        }
    }
    for server in &config.mcp {
        let McpPlace::Command(command) = &server.place else { continue };
        let name = &server.name;
        if let Some(path) = command.read.iter().find(|path| home.overlaps(Path::new(path))) {
            refuse("mcp", name, "read", format!("[mcp.{name}] read = {path:?} has kiso's own home in it, or is in it"));
        }
        if let Some(port) = command.connect_ports.iter().find(|port| u64::from(**port) == config.gateway.port) {
            refuse(
                "mcp",
                name,
                "connect_ports",
                format!("[mcp.{name}] connect_ports names {port}, which is kiso's own port"),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Trusts the certificates of `[network] ca_file` in the whole process.
pub(super) fn trust_ca_file(config: &Config, text: &str, home: &Home) -> Result<(), Vec<Problem>> {
    let Some(file) = config.ca_file(home) else { return Ok(()) };
    trust_file(&file).map_err(|why| {
        let message = format!("network.ca_file: {} cannot be used: {why}", file.display());
        vec![problem(text, place(text, "network", "ca_file", ""), message)]
    })
}

/// Returns the place of a key of a named table in a valid text; the start of the table if its value has no keys.
fn place(text: &str, table: &str, name: &str, key: &str) -> usize {
    let Ok(document) = toml::de::DeTable::parse(text) else { return 0 };
    let mut at = document.get_ref();
    let mut start = 0;
    for part in table.split('.').chain([name, key]) {
        let Some((found, value)) = at.iter().find(|(known, _)| known.get_ref() == part) else { break };
        start = found.span().start;
        let toml::de::DeValue::Table(inner) = value.get_ref() else { break };
        at = inner;
    }
    start
}

impl Config {
    /// Returns the server whose `connect_ports` contain this port. While no token exists, it could post messages as the user
    /// there.
    pub fn server_that_connects_to(&self, port: u16) -> Option<&str> {
        let connects =
            |place: &McpPlace| matches!(place, McpPlace::Command(place) if place.connect_ports.contains(&port));
        self.mcp.iter().find(|server| connects(&server.place)).map(|server| server.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_key_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        std::os::unix::fs::symlink(home.path(), dir.path().join("link")).unwrap();
        let [outer, link] =
            [dir.path().to_owned(), dir.path().join("link/sessions")].map(|path| path.display().to_string());
        let keys = dir.path().join("x/.ssh");
        std::fs::create_dir_all(&keys).unwrap();
        let server = "[mcp.a]\ncommand = [\"/bin/a\"]\noutside_the_sandbox = true\n";
        for (text, said) in [
            (format!("[exec.mounts]\n\"/a\" = \"/srv\"\n\"/b\" = \"{outer}\"\n"), "3:1: exec.mounts.\"/b\""),
            (format!("[exec.mounts.\"/b\"]\nwrite = true\npath = \"{link}\"\n"), "3:1: exec.mounts.\"/b\""),
            (format!("[folders.a]\npath = \"{outer}\"\n"), "2:1: folders.a.path: "),
            (format!("[folders.a]\nforce = true\npath = \"{link}\"\n"), "3:1: folders.a.path: "),
            ("[folders.a]\npath = \"/\"\nforce = true\n".to_owned(), "2:1: folders.a.path: / cannot be opened"),
            (format!("[folders.a]\npath = {keys:?}\n"), "2:1: folders.a.path: "),
            (format!("{server}read = [\"/srv\", \"{link}\"]\n"), "4:1: [mcp.a] read = "),
            (format!("{server}connect_ports = [443, 9]\n[gateway]\nport = 9\n"), "4:1: [mcp.a] connect_ports names 9"),
        ] {
            let config = Config::parse(text.as_bytes()).unwrap();
            let problems = check(&config, &text, &home).unwrap_err();
            assert!(problems[0].to_string().starts_with(said), "{text}: {problems:?}");
        }
        for rest in [format!("path = {keys:?}\nforce = true"), "path = \"/no/such/place\"".to_owned()] {
            let config = Config::parse(format!("[folders.a]\n{rest}\n").as_bytes()).unwrap();
            assert_eq!(check(&config, "", &home), Ok(()), "{rest}");
        }
        let config = Config::parse(format!("{server}connect_ports = [443]\n").as_bytes()).unwrap();
        assert_eq!(check(&config, "", &home), Ok(()));
        assert_eq!((config.server_that_connects_to(443), config.server_that_connects_to(80)), (Some("a"), None));
    }
}
