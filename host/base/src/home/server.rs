//! Directories of MCP servers that are programs of this machine, and the locks of their logins.

use super::{Home, HomeError, HomeLock, lock, private_dir};
use std::path::PathBuf;

impl Home {
    /// The directory of an MCP server that is a program of this machine. It can write nowhere else.
    pub fn server_dir(&self, server: &str) -> PathBuf {
        self.path().join("mcp").join(server)
    }

    /// Creates [`Home::server_dir`] if it is missing. `server` is a name of `config.toml`.
    pub fn create_server_dir(&self, server: &str) -> Result<PathBuf, HomeError> {
        let dir = self.server_dir(server);
        private_dir(&self.path().join("mcp"))?;
        private_dir(&dir)?;
        Ok(dir)
    }

    /// Held while the login at an MCP server changes; `None` if it is held already. Names of servers contain no dot, so the
    /// lock's name cannot conflict with one.
    pub fn try_lock_login(&self, server: &str) -> Result<Option<HomeLock>, HomeError> {
        let dir = self.path().join("mcp");
        private_dir(&dir)?;
        lock::try_take(&dir.join(format!("{server}.login.lock")))
    }
}
