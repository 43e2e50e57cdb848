//! The home's unix socket, for programs of its owner, such as the terminal.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::Channel;
use kiso_base::home::Home;
use kiso_gateway::{App, ListenError, Socket};

/// The socket, before it is served.
#[derive(Debug)]
pub(super) struct UnixSocket {
    path: PathBuf,
    socket: Mutex<Option<Socket>>,
}

impl UnixSocket {
    /// Creates the socket of a home.
    pub(super) fn open(home: &Home) -> Result<UnixSocket, ListenError> {
        let path = home.socket_path();
        let socket = Mutex::new(Some(Socket::bind(&path)?));
        Ok(UnixSocket { path, socket })
    }
}

impl Channel for UnixSocket {
    fn name(&self) -> &str {
        "socket"
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn serve(self: Arc<Self>, app: App, ending: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(socket) = socket {
                socket.serve(app, ending).await;
            }
        })
    }
}
