//! A network link between a member and the server that can be frozen: connections stay open, and no byte arrives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum duration of one write before the link checks for a freeze: `freeze` waits at most this long.
const WRITE: Duration = Duration::from_millis(50);

/// A port that forwards connections to the server.
pub(super) struct Cable {
    port: u16,
    shared: Arc<Shared>,
}

/// Direction of the bytes: to the server, or from it.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Up,
    Down,
}

#[derive(Default)]
struct Shared {
    flow: Mutex<Flow>,
    changed: Condvar,
}

#[derive(Default)]
struct Flow {
    frozen: bool,
    /// Bytes that freeze the link when they are sent to the server.
    trap: Option<Vec<u8>>,
    /// Number of writes in progress.
    writing: usize,
    /// Number of threads with bytes to forward, up and down.
    holding: [usize; 2],
    /// Both ends of each connection.
    ends: Vec<[TcpStream; 2]>,
    gone: bool,
}

impl Cable {
    /// A link to a port of this machine.
    pub(super) fn new(to: u16) -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it has one").port();
        let shared: Arc<Shared> = Arc::default();
        let plugged = shared.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if plugged.thawed().gone {
                    return;
                }
                // Without a server there is no connection, and the member sees that its own ends.
                if let Ok(far) = TcpStream::connect(("127.0.0.1", to)) {
                    let _ = connect(&plugged, near, far);
                }
            }
        });
        Cable { port, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Freezes the link: nothing arrives at either end, and no connection is closed.
    pub(super) fn freeze(&self) {
        let mut flow = self.shared.lock();
        flow.frozen = true;
        drop(self.shared.changed.wait_while(flow, |flow| flow.writing > 0).expect("no thread panics with it"));
    }

    /// Freezes the link as soon as these bytes would be sent to the server; they do not arrive.
    pub(super) fn freeze_at(&self, bytes: &str) {
        self.shared.lock().trap = Some(bytes.as_bytes().to_vec());
    }

    /// Thaws the link: held bytes arrive, and everything after them.
    pub(super) fn thaw(&self) {
        self.shared.lock().frozen = false;
        self.shared.changed.notify_all();
    }

    /// Whether frozen bytes wait in this direction.
    pub(super) fn holds(&self, way: Way) -> bool {
        let flow = self.shared.lock();
        flow.frozen && flow.holding[way as usize] > 0
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let mut flow = self.shared.flow.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (flow.gone, flow.frozen) = (true, false);
        for end in flow.ends.iter().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
        drop(flow);
        self.shared.changed.notify_all();
        // Connects once, so that the waiting thread accepts and ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().expect("no thread panics with it")
    }

    fn thawed(&self) -> MutexGuard<'_, Flow> {
        self.changed.wait_while(self.lock(), |flow| flow.frozen).expect("no thread panics with it")
    }

    fn spring(&self, bytes: &[u8]) {
        let mut flow = self.lock();
        let is_in = |trap: &Vec<u8>| bytes.windows(trap.len()).any(|window| window == trap);
        if flow.trap.take_if(|trap| is_in(trap)).is_some() {
            flow.frozen = true;
        }
    }

    /// Waits while the link is frozen, with bytes for this direction.
    fn hold(&self, way: Way) -> MutexGuard<'_, Flow> {
        let mut flow = self.lock();
        flow.holding[way as usize] += 1;
        let mut flow = self.changed.wait_while(flow, |flow| flow.frozen).expect("no thread panics with it");
        flow.holding[way as usize] -= 1;
        flow
    }
}

fn connect(shared: &Arc<Shared>, near: TcpStream, far: TcpStream) -> std::io::Result<()> {
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_write_timeout(Some(WRITE))?;
    }
    shared.lock().ends.push([near.try_clone()?, far.try_clone()?]);
    for (from, to, way) in [(near.try_clone()?, far.try_clone()?, Way::Up), (far, near, Way::Down)] {
        let shared = shared.clone();
        std::thread::spawn(move || pump(&shared, from, to, way));
    }
    Ok(())
}

/// Forwards bytes until one end is closed.
fn pump(shared: &Shared, mut from: TcpStream, mut to: TcpStream, way: Way) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let mut rest = &buffer[..read];
        if matches!(way, Way::Up) {
            shared.spring(rest);
        }
        while !rest.is_empty() {
            shared.hold(way).writing += 1;
            let written = to.write(rest);
            shared.lock().writing -= 1;
            shared.changed.notify_all();
            match written {
                Ok(count) => rest = &rest[count..],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return close(shared, &from, &to),
            }
        }
    }
    close(shared, &from, &to);
}

/// The end of a connection does not pass a frozen link either.
fn close(shared: &Shared, from: &TcpStream, to: &TcpStream) {
    drop(shared.thawed());
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
