//! Where MCP servers write that are programs of this machine.

use super::{Home, HomeError, private_dir};
use std::path::PathBuf;

impl Home {
    /// The directory of an MCP server that is a program of this machine, the only one that it can write to.
    pub fn server_dir(&self, server: &str) -> PathBuf {
        self.path().join("mcp").join(server)
    }

    /// Makes [`Home::server_dir`] where it is missing. `server` is a name of `config.toml`.
    pub fn create_server_dir(&self, server: &str) -> Result<PathBuf, HomeError> {
        let dir = self.server_dir(server);
        private_dir(&self.path().join("mcp"))?;
        private_dir(&dir)?;
        Ok(dir)
    }
}
