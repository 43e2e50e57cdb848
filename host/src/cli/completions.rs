//! `kiso completions`: scripts that complete commands and options.

use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell to write for
    shell: Shell,
}

impl Completions {
    pub fn execute(&self, kiso: &mut clap::Command) {
        clap_complete::generate(self.shell, kiso, "kiso", &mut std::io::stdout());
    }
}
