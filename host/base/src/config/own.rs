//! Settings that would hand kiso's own home, or its own port, to what is not to reach it.

use super::Config;
use super::mcp::McpPlace;
use super::parse::{Problem, problem};
use crate::home::Home;
use std::path::Path;

/// Checks the tables of a configuration that was read from `text`.
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

/// Where a key of a named table stands in a text that is known to be valid; where the table begins, if its value has no keys.
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
    /// The server whose `connect_ports` names this port. While no token exists, it could post messages as the user there.
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
        let server = "[mcp.a]\ncommand = [\"/bin/a\"]\noutside_the_sandbox = true\n";
        for (text, said) in [
            (format!("[exec.mounts]\n\"/a\" = \"/srv\"\n\"/b\" = \"{outer}\"\n"), "3:1: exec.mounts.\"/b\""),
            (format!("[exec.mounts.\"/b\"]\nwrite = true\npath = \"{link}\"\n"), "3:1: exec.mounts.\"/b\""),
            (format!("{server}read = [\"/srv\", \"{link}\"]\n"), "4:1: [mcp.a] read = "),
            (format!("{server}connect_ports = [443, 9]\n[gateway]\nport = 9\n"), "4:1: [mcp.a] connect_ports names 9"),
        ] {
            let config = Config::parse(text.as_bytes()).unwrap();
            let problems = check(&config, &text, &home).unwrap_err();
            assert!(problems[0].to_string().starts_with(said), "{text}: {problems:?}");
        }
        let config = Config::parse(format!("{server}connect_ports = [443]\n").as_bytes()).unwrap();
        assert_eq!(check(&config, "", &home), Ok(()));
        assert_eq!((config.server_that_connects_to(443), config.server_that_connects_to(80)), (Some("a"), None));
    }
}
