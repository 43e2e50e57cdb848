//! The first page of help: commands in groups.

use clap::Command;
use std::fmt::Write;

/// Every visible command. The last group is listed by names alone.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["chat", "run", "serve", "open", "doctor"]),
    (
        "Work",
        &["session", "schedule", "pill", "shell", "files", "diff", "undo", "trace", "cancel", "approval", "memory"],
    ),
    ("Extend", &["skill", "connect", "mcp", "acp", "role"]),
    ("Operate", &["config", "network", "secret", "token", "service", "backup", "restore"]),
    ("Others", &["bench", "completions", "fleet", "man", "self"]),
];

/// Groups the commands on the help page.
pub(super) fn grouped(command: Command) -> Command {
    let header = command.get_styles().get_header();
    let name = command.get_styles().get_literal();
    let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    let [listed @ .., (others, other_names)] = &GROUPS;
    for (title, names) in listed {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for known in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let _ = writeln!(text, "  {name}{:<10}{name:#}{}", known.get_name(), about(known));
        }
    }
    let _ = writeln!(text, "\n{header}{others}:{header:#} {}", other_names.join(", "));
    let _ = write!(
        text,
        "  Help for each command: kiso help COMMAND\n\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Kiso;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Kiso::command();
        let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
        let mut known: Vec<_> = known.collect();
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }
}
