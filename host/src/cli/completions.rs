//! `kiso completions`: scripts that complete commands and options.

use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell to generate completions for
    shell: Shell,
}

impl CompletionsArgs {
    pub fn execute(&self, kiso: &mut clap::Command) {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, kiso, "kiso", &mut script);
        out!("{}", String::from_utf8_lossy(&script));
    }
}
