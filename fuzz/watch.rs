//! The watchdog: prints the input that takes too much time or memory, and ends the process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum processor time of an execution in the long lane. The machine may be busy, so the wall clock counts only after a
/// minute: an execution that used no processor time by then hangs.
const STRICT: Duration = Duration::from_secs(5);
const PATIENT: Duration = Duration::from_secs(60);

/// Growth of memory in KiB that ends the process.
const MOST_KIB: u64 = 512 << 10;

/// Bytes of an input that are printed. The whole input is saved to a file.
const PRINTED: usize = 4_000;

struct Current {
    seed: u64,
    number: u64,
    /// Number of inputs that run together, starting with `number`.
    count: usize,
    inputs: Vec<u8>,
    began: Instant,
    /// Processor time used before this execution.
    used: Duration,
}

struct Shared {
    target: &'static str,
    process: Option<u32>,
    /// Maximum processor time of an execution.
    limit: Duration,
    current: Mutex<Option<Current>>,
    /// KiB before the first input, and the maximum since.
    before: u64,
    most: AtomicU64,
    over: AtomicBool,
}

pub(crate) struct Watch(Arc<Shared>);

impl Watch {
    pub(crate) fn start(target: &'static str, process: Option<u32>, strict: bool) -> Watch {
        let before = resident(process);
        let shared = Shared {
            target,
            process,
            limit: if strict { STRICT } else { PATIENT },
            current: Mutex::new(None),
            before,
            most: AtomicU64::new(before),
            over: AtomicBool::new(false),
        };
        let watch = Watch(Arc::new(shared));
        let looks = Watch(watch.0.clone());
        std::thread::spawn(move || {
            while !looks.0.over.load(Ordering::Relaxed) {
                looks.look();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        watch
    }

    fn look(&self) {
        let resident = resident(self.0.process);
        self.0.most.fetch_max(resident, Ordering::Relaxed);
        let current = self.0.current.lock().unwrap();
        let Some(current) = &*current else { return };
        let used = self.used().saturating_sub(current.used);
        if used > self.0.limit || current.began.elapsed() > PATIENT {
            let (took, count) = (current.began.elapsed(), current.count);
            let why = format!("one of {count} from this number on takes {took:?}, {used:?} of them computing");
            self.fail(current.seed, current.number, &current.inputs, &why);
        }
        if resident.saturating_sub(self.0.before) > MOST_KIB {
            let grown = (resident - self.0.before) >> 10;
            self.fail(current.seed, current.number, &current.inputs, &format!("memory has grown by {grown} MiB"));
        }
    }

    pub(crate) fn begin(&self, seed: u64, number: u64, inputs: &[Vec<u8>]) {
        let (began, used) = (Instant::now(), self.used());
        let current = Current { seed, number, count: inputs.len(), inputs: inputs.join(&b'\n'), began, used };
        *self.0.current.lock().unwrap() = Some(current);
    }

    /// Processor time of this process and of the watched one.
    fn used(&self) -> Duration {
        computed("/proc/self/stat") + self.0.process.map_or(Duration::ZERO, |id| computed(&format!("/proc/{id}/stat")))
    }

    pub(crate) fn done(&self) {
        *self.0.current.lock().unwrap() = None;
    }

    /// Maximum growth of memory in MiB.
    pub(crate) fn end(self) -> u64 {
        self.0.over.store(true, Ordering::Relaxed);
        self.0.most.load(Ordering::Relaxed).saturating_sub(self.0.before) >> 10
    }

    /// Prints the failed input, the reason and the command that repeats it, and ends the process.
    pub(crate) fn fail(&self, seed: u64, number: u64, input: &[u8], why: &str) -> ! {
        let target = self.0.target;
        let file = std::env::temp_dir().join(format!("kiso-fuzz-{target}-{seed}-{number}"));
        let _ = std::fs::write(&file, input);
        let shown = String::from_utf8_lossy(&input[..input.len().min(PRINTED)]);
        eprintln!(
            "\n{target}: {why}\n\
             again: KISO_FUZZ_TARGET={target} KISO_FUZZ_SEED={seed} KISO_FUZZ_AT={number}\n\
             input ({} bytes, {}): {shown:?}",
            input.len(),
            file.display()
        );
        std::process::abort()
    }
}

/// Memory of a process in KiB, by default of this one. 0 if the system does not report it.
fn resident(process: Option<u32>) -> u64 {
    let path = process.map_or("/proc/self/status".to_owned(), |id| format!("/proc/{id}/status"));
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Processor time in user and kernel mode from a Linux `stat` file. Zero if the system does not report it.
fn computed(path: &str) -> Duration {
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    // The name may contain spaces and brackets; the third field follows it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(14) + ticks(15)) * 1_000 / rustix::param::clock_ticks_per_second().max(1))
}
