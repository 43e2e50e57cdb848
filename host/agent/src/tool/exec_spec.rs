//! The definition of `exec` for models.

use super::EXEC;
use kiso_base::config;
use kiso_llm::ToolSpec;
use kiso_sandbox::exec::hint;
use kiso_sandbox::package::Package;
use serde_json::json;
use std::sync::Arc;

/// Returns the tool, with its additional commands and its limits.
pub(super) fn spec(packages: &[Arc<Package>], limits: &config::Exec) -> ToolSpec {
    ToolSpec {
        name: EXEC.to_owned(),
        description: format!(
            "Run a bash command line in /work. curl, wget, git and Python reach hosts; the user is asked for new ones. {} {}",
            hint::commands(packages),
            limits_text(limits)
        ),
        parameters: json!({
            "type": "object",
            "properties": { "command": { "type": "string", "minLength": 1, "maxLength": 65536 } },
            "required": ["command"],
            "additionalProperties": false,
        }),
    }
}

/// Describes the limits of a command line, and its lasting effects, for models.
fn limits_text(limits: &config::Exec) -> String {
    let config::Exec { timeout_s, memory_mib, output_kib, .. } = limits;
    format!(
        "At most {timeout_s} s, {memory_mib} MiB of memory and {output_kib} KiB of output; a line that is stopped loses its changes \
         to files. Only files in /work outlive the line; /tmp begins empty. No background work, threads or \
         servers."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_that_are_told_are_those_of_the_configuration() {
        let limits = config::Exec { timeout_s: 7, memory_mib: 33, output_kib: 9, ..config::Exec::default() };
        let told = spec(&[], &limits).description;
        for part in ["At most 7 s, 33 MiB of memory and 9 KiB of output", "loses its changes", "/tmp begins empty"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn the_definition_stays_short() {
        let tokens = kiso_plan::estimate::tokens(&spec(&[], &config::Exec::default()).description);
        assert!(tokens <= MOST, "{tokens} tokens");
    }

    /// Maximum tokens without packages, because the definition is part of each request of the actor.
    const MOST: usize = 140;
}
