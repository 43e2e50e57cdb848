//! A cable between a member and the server that can be frozen: connections stay, and no byte arrives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long one write may take before it is looked whether the cable is frozen: `freeze` waits for as long at most.
const WRITE: Duration = Duration::from_millis(50);

/// Whoever connects to it is connected to the server.
pub(super) struct Cable {
    port: u16,
    shared: Arc<Shared>,
}

/// Towards the server, or from it.
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
    /// What freezes it when it goes up.
    trap: Option<Vec<u8>>,
    /// Writes that have begun.
    writing: usize,
    /// Threads that have bytes to pass on, up and down.
    holding: [usize; 2],
    /// Both ends of each connection.
    ends: Vec<[TcpStream; 2]>,
    gone: bool,
}

impl Cable {
    /// To a port of this machine.
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
                // Without a server there is nothing to connect to, and the member sees that its connection ends.
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

    /// From now on nothing arrives at either end, and nobody is told.
    pub(super) fn freeze(&self) {
        let mut flow = self.shared.lock();
        flow.frozen = true;
        drop(self.shared.changed.wait_while(flow, |flow| flow.writing > 0).expect("no thread panics with it"));
    }

    /// The same from the moment in which these bytes would go up, which do not arrive.
    pub(super) fn freeze_at(&self, bytes: &str) {
        self.shared.lock().trap = Some(bytes.as_bytes().to_vec());
    }

    /// What was sent meanwhile arrives, and everything after it.
    pub(super) fn thaw(&self) {
        self.shared.lock().frozen = false;
        self.shared.changed.notify_all();
    }

    /// Whether bytes wait that way because it is frozen.
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
        // Whoever waits for the next connection gets one, and ends.
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

    /// Waits as long as it is frozen, with bytes that go this way.
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

/// Passes on what comes, until one end is closed.
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

/// That a connection ended is not told through a frozen cable either.
fn close(shared: &Shared, from: &TcpStream, to: &TcpStream) {
    drop(shared.thawed());
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
