//! Compiles the bundled guests that `host/guests` has built, and writes two lists: the skills that `skill/installed.rs` includes, and the
//! compiled commands that `exec/embedded.rs` includes.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a build script that panics has failed")]

#[path = "src/engine/compile.rs"]
mod compile;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use wasmtime::Engine;

/// In the order of a listing.
const BUNDLED: [&str; 6] = ["chart", "data", "document", "feed", "fetch", "search"];

/// Channels. No plan can call them.
const CHANNELS: [&str; 2] = ["ntfy", "telegram"];

/// The components of exec tasks: the shell, and those that hold commands.
const COMMANDS: [&str; 5] = ["coreutils", "curl", "image", "js", "shell"];

/// The commands that are stored in the program in their mapped form. The others are rarely used, and unpacked when they are
/// needed.
const UNPACKED: [&str; 2] = ["coreutils", "shell"];

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the host lies in the workspace");
    // The package that builds the guests watches their sources.
    let components = std::env::var_os("DEP_KISO_GUESTS_COMPONENTS").expect("kiso-guests says where they are");
    let components = PathBuf::from(components);
    for name in BUNDLED.iter().chain(&CHANNELS).chain(&COMMANDS) {
        println!("cargo::rerun-if-changed={}", components.join(format!("{name}.wasm")).display());
    }
    let table = root.join("skills/coreutils/src/table.rs");
    println!("cargo::rerun-if-changed={}", table.display());
    for name in BUNDLED {
        println!("cargo::rerun-if-changed={}", root.join("skills").join(name).join("kiso.toml").display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/engine/compile.rs");

    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = compiler(compile::SKILL_RESERVATION);
    let mut list = String::from("/// The skills inside the binary.\npub(super) static BUNDLED: &[BundledSkill] = &[\n");
    for name in BUNDLED {
        let manifest = root.join("skills").join(name).join("kiso.toml");
        list.push_str(&bundled(&compiler, &components, &out, name, &format!("include_str!({manifest:?})")));
    }
    list.push_str("];\n\n/// The channels inside the binary.\npub(super) static CHANNELS: &[BundledSkill] = &[\n");
    for name in CHANNELS {
        list.push_str(&bundled(&compiler, &components, &out, name, "\"\""));
    }
    list.push_str("];\n");
    std::fs::write(out.join("bundled.rs"), list).expect("OUT_DIR can be written");

    std::fs::write(out.join("packages.rs"), packages(&root.join("packages"))).expect("OUT_DIR can be written");

    let commands = commands(&components, &out) + &coreutils_names(&table);
    std::fs::write(out.join("commands.rs"), commands).expect("OUT_DIR can be written");
}

/// The files of all packages, sorted by their paths below `packages/`.
fn packages(dir: &Path) -> String {
    println!("cargo::rerun-if-changed={}", dir.display());
    let entries = |dir: &Path| {
        let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        entries.map(|entry| entry.expect("it can be read").path()).collect::<Vec<_>>()
    };
    let folders = entries(dir).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<_> = folders.flat_map(|folder| entries(&folder)).filter(|path| path.is_file()).collect();
    files.sort();
    let entry = |file: &PathBuf| {
        let name = file.strip_prefix(dir).expect("it lies below");
        format!("    ({name:?}, include_bytes!({file:?})),\n")
    };
    let list: String = files.iter().map(entry).collect();
    format!("static BUNDLED_FILES: &[(&str, &[u8])] = &[\n{list}];\n")
}

/// An entry of a list: a component with its digest, and its compiled code.
fn bundled(compiler: &Engine, components: &Path, out: &Path, name: &str, manifest: &str) -> String {
    let wasm = components.join(format!("{name}.wasm"));
    let bytes = read(&wasm);
    let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let (code, wasm) = (packed(&compiled(compiler, components, name), out), packed(&wasm, out));
    let is_command = bytes.windows(COMMAND.len()).any(|name| name == COMMAND);
    let about = format!("name: {name:?}, digest: {digest:?}, is_command: {is_command}, manifest: {manifest}");
    format!("    BundledSkill {{ {about}, wasm: {wasm}, code: {code} }},\n")
}

/// The beginning of the export that a component of the command shape has, and no other.
const COMMAND: &[u8] = b"wasi:cli/run@0.2.";

/// The commands as statics. Those that most lines need are stored in their mapped form; the others are unpacked at their first
/// use.
fn commands(components: &Path, out: &Path) -> String {
    let compiler = compiler(compile::EXEC_RESERVATION);
    let mut list = String::new();
    for name in COMMANDS {
        let code = compiled(&compiler, components, name);
        let constant = name.to_uppercase();
        let described = format!("/// Compiled `skills/{name}`.\npub(super) static {constant}:");
        let entry = if UNPACKED.contains(&name) {
            format!(
                "{described} &PageAligned<[u8]> =\n    &PageAligned {{ _align: [], code: *include_bytes!({code:?}) }};\n"
            )
        } else {
            format!("{described} DeflatedBytes = {};\n", packed(&code, out))
        };
        list.push_str(&entry);
    }
    list
}

/// Deflates a file. Returns the expression that includes it in the program.
fn packed(file: &Path, out: &Path) -> String {
    let bytes = read(file);
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    let deflated = encoder.write_all(&bytes).and_then(|()| encoder.finish()).expect("a vector takes all bytes");
    let name = file.file_name().expect("it is a file").to_string_lossy();
    let file = out.join(format!("{name}.deflated"));
    std::fs::write(&file, deflated).expect("OUT_DIR can be written");
    format!("DeflatedBytes {{ deflated: include_bytes!({file:?}), bytes: {} }}", bytes.len())
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Compiles a component for the target, so that nobody waits for it at run time, and returns the file.
///
/// The compiled code is kept beside the guests. Its name depends on all its inputs, so a build that changed something else reuses
/// it.
fn compiled(compiler: &Engine, components: &Path, name: &str) -> PathBuf {
    let target = target();
    let wasm = components.join(format!("{name}.wasm"));
    let bytes = read(&wasm);
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    compiler.precompile_compatibility_hash().hash(&mut hasher);
    let file = components.join(format!("{name}-{target}-{:016x}.cwasm", hasher.finish()));
    if !file.exists() {
        forget_older(components, &format!("{name}-{target}-"));
        let code = compiler.precompile_component(&bytes).unwrap_or_else(|e| panic!("{name} does not compile: {e:#}"));
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&temporary, code).expect("the target directory can be written");
        std::fs::rename(&temporary, &file).expect("the target directory can be written");
    }
    file
}

/// The names that `coreutils` answers to, read from its table: one command in a line.
fn coreutils_names(table: &Path) -> String {
    let table = std::fs::read_to_string(table).unwrap_or_else(|e| panic!("{}: {e}", table.display()));
    let entries = table.lines().filter_map(|line| {
        let entry = line.strip_prefix("    uutils(\"").or_else(|| line.strip_prefix("    own(\""))?;
        Some(entry.split_once('"')?.0)
    });
    let mut names: Vec<&str> = entries.collect();
    names.sort_unstable();
    assert!(names.len() > 70, "the table of coreutils has another form: {} names found", names.len());
    format!(
        "/// The names of the commands in `coreutils`, sorted.\npub(super) static COREUTILS_NAMES: &[&str] = &{names:?};\n"
    )
}

/// An engine that compiles for the target's baseline rather than for this machine: the binary may be copied to another.
fn compiler(memory_reservation: u64) -> Engine {
    let (target, mut settings) = (target(), compile::settings(memory_reservation));
    settings.target(&target).unwrap_or_else(|e| panic!("wasmtime cannot compile for {target}: {e:#}"));
    if target.starts_with("x86_64") {
        for feature in ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"] {
            // SAFETY: the engine that loads the code refuses it on a processor without the feature.
            unsafe { settings.cranelift_flag_enable(feature) };
        }
    }
    Engine::new(&settings).unwrap_or_else(|e| panic!("wasmtime cannot compile for {target}: {e:#}"))
}

fn target() -> String {
    std::env::var("TARGET").expect("cargo sets TARGET")
}

fn forget_older(dir: &Path, prefix: &str) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
