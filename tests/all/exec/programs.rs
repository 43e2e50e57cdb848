//! WebAssembly programs in files of a session: they run like commands, with the same limits and the same access.

use super::{hasty, intact, small};
use crate::harness::Home;
use std::os::unix::fs::PermissionsExt;

/// The imports of WASI preview 1 in all of these programs.
const WASI: &str = r#"
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "wasi_snapshot_preview1" "path_open"
      (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (memory (export "memory") 2)
    (func $put (param $from i32) (param $size i32)
      (i32.store (i32.const 0) (local.get $from)) (i32.store (i32.const 4) (local.get $size))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
    (func $length (param $text i32) (result i32) (local $at i32)
      (local.set $at (local.get $text))
      (loop $next
        (if (i32.load8_u (local.get $at)) (then (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $next))))
      (i32.sub (local.get $at) (local.get $text)))"#;

fn program(start: &str) -> Vec<u8> {
    let text = format!("(module {WASI} (func (export \"_start\") {start}))");
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Copies standard input to standard output. Reads zero bytes before each read, which must not end the input.
pub(crate) fn cat() -> Vec<u8> {
    program(
        "(loop $next
           (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 0))
           (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
           (i32.store (i32.const 4) (i32.const 4096))
           (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
           (if (i32.load (i32.const 8)) (then (call $put (i32.const 1024) (i32.load (i32.const 8))) (br $next))))",
    )
}

/// Prints its own name and ends with 7.
fn name() -> Vec<u8> {
    program(
        "(drop (call $args (i32.const 16) (i32.const 1024)))
         (call $put (i32.const 1024) (call $length (i32.const 1024))) (call $exit (i32.const 7))",
    )
}

/// Prints the file `a.txt` of its last directory, which is the working directory. Reads zero bytes between two reads.
fn reader() -> Vec<u8> {
    let text = format!(
        r#"(module {WASI} (data (i32.const 512) "a.txt") (func $try (param $dir i32) (result i32)
             (call $open (local.get $dir) (i32.const 1) (i32.const 512) (i32.const 5) (i32.const 0) (i64.const 2) (i64.const 2)
               (i32.const 0) (i32.const 520)))
           (func (export "_start") (local $dir i32)
             (local.set $dir (i32.const 31))
             (block $found (loop $next
               (br_if $found (i32.eqz (call $try (local.get $dir))))
               (local.set $dir (i32.sub (local.get $dir) (i32.const 1)))
               (br_if $next (i32.gt_u (local.get $dir) (i32.const 2))))
               (call $exit (i32.const 1)))
             (loop $more
               (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 0))
               (drop (call $read (i32.load (i32.const 520)) (i32.const 0) (i32.const 1) (i32.const 8)))
               (i32.store (i32.const 4) (i32.const 2))
               (drop (call $read (i32.load (i32.const 520)) (i32.const 0) (i32.const 1) (i32.const 8)))
               (if (i32.load (i32.const 8)) (then (call $put (i32.const 1024) (i32.load (i32.const 8))) (br $more))))))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn put(home: &Home, path: &str, bytes: &[u8]) {
    let file = home.work("default").join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_program_is_started_as_every_command_is() {
    let home = Home::new();
    home.shell("mkdir -p bin dir; echo within > dir/a.txt; echo above > a.txt").ok();
    put(&home, "bin/name", &name());
    put(&home, "cat.wasm", &cat());
    put(&home, "reader", &reader());
    for (line, code, printed) in [
        ("./bin/name", 7, "./bin/name"),
        ("/work/bin/name", 7, "/work/bin/name"),
        ("PATH=$PATH:/work/bin; name", 7, "name"),
        ("bin/name; echo \" $?\"", 0, "bin/name 7"),
        ("sh -c 'cd bin; ./name'", 7, "./name"),
        ("timeout 20 bin/name", 7, "bin/name"),
        ("PATH=/usr/bin:bin timeout 20 name", 7, "name"),
        ("echo | xargs ./bin/name", 123, "./bin/name"),
        ("find bin -type f -exec {} \\;", 0, "bin/name"),
        ("env -i /work/bin/name", 7, "/work/bin/name"),
        ("(exec bin/name)", 7, "bin/name"),
        ("x=$(bin/name); echo \"<$x>\"", 0, "<bin/name>"),
        ("seq 30000 | ./cat.wasm | ./cat.wasm | tail -n 1", 0, "30000"),
        ("./cat.wasm < a.txt", 0, "above"),
        ("./reader", 0, "above"),
        ("cd dir && ../reader && cd .. && ./reader", 0, "within\nabove"),
        ("yes | ./cat.wasm | head -n 1; echo ${PIPESTATUS[1]}", 0, "y\n141"),
        (
            "js -e 'console.log(require(\"child_process\").execSync(\"./bin/name || true\").toString())'",
            0,
            "./bin/name",
        ),
        ("ls bin; ls /work/bin/name", 0, "name\n/work/bin/name"),
    ] {
        let ran = home.shell(line);
        assert_eq!((ran.exit(code).stdout.trim(), code), (printed, code), "{line}: {}", ran.stderr);
    }
    // A program is compiled once, whatever its name.
    let compiled = || std::fs::read_dir(home.path().join("cache/programs")).unwrap().count();
    assert_eq!(compiled(), 3);
    home.shell("cp bin/name other; ./other").exit(7);
    assert_eq!(compiled(), 3);
}

#[test]
fn what_is_no_program_says_why() {
    let home = Home::new();
    home.shell("true").ok();
    let imports =
        wat::parse_str(r#"(module (import "env" "f" (func)) (memory (export "memory") 1) (func (export "_start")))"#);
    let starts = wat::parse_str(r#"(component (import "kiso:exec/spawn@0.1.0" (instance)))"#).unwrap();
    let two = r#"(module (memory (export "memory") 1) (memory 1) (func (export "_start")))"#;
    for (name, bytes, why) in [
        ("cut", b"\0asm".to_vec(), "cannot execute binary file: it cannot be compiled"),
        ("imports", imports.unwrap(), "env"),
        ("starts", starts, "cannot execute binary file"),
        ("reactor", wat::parse_str("(module (memory (export \"memory\") 1))").unwrap(), "cannot execute binary file"),
        ("two", wat::parse_str(two).unwrap(), "cannot execute binary file"),
        ("elf", b"\x7fELF\x02\x01\x01\0".to_vec(), "cannot execute binary file"),
        ("large", [b"\0asm".as_slice(), &vec![0; 33 << 20]].concat(), "a program has at most 32 MiB"),
    ] {
        put(&home, name, &bytes);
        let ran = home.shell(&format!("./{name}; code=$?; echo went on; exit $code"));
        ran.exit(126).prints(&["went on"]).says(&[name, why]);
    }
    home.shell("timeout 5 ./nothing").exit(127).says(&["./nothing: command not found"]);
    home.shell("sh ./cut").exit(126).says(&["cannot execute binary file"]);
    // Scripts are found in the same way.
    put(&home, "script", b"echo script $1\n");
    std::fs::set_permissions(home.work("default").join("script"), std::fs::Permissions::from_mode(0o644)).unwrap();
    home.shell("timeout 5 ./script a; PATH=/usr/bin:. xargs script < /dev/null").ok().prints(&["script a\nscript"]);
}

#[test]
fn a_program_has_the_limits_of_its_line() {
    let spin = program("(loop $on (br $on))");
    let grow =
        program("(loop $on (if (i32.ne (memory.grow (i32.const 64)) (i32.const -1)) (then (br $on)))) (unreachable)");
    let crash = program("(unreachable)");
    let home = hasty();
    for (name, bytes) in [("spin", &spin), ("grow", &grow), ("crash", &crash), ("cat.wasm", &cat())] {
        put(&home, name, bytes);
    }
    home.shell("./crash; echo $?").ok().prints(&["134"]).says(&["./crash: aborted"]);
    home.shell("timeout 0.2 ./spin; echo $?").ok().prints(&["124"]);
    home.shell("./spin & echo on; wait").exit(137).says(&["timeout_s"]);
    intact(&home);
    let home = small();
    put(&home, "grow", &grow);
    put(&home, "cat.wasm", &cat());
    home.shell("./grow").exit(137).says(&["memory_mib"]);
    intact(&home);
    home.shell("yes | ./cat.wasm > out.txt").exit(137).says(&["write_mib"]);
    let told = home.shell_json("yes | ./cat.wasm");
    assert!(told["limit"]["setting"].as_str().unwrap().contains("[exec] max_output_mib"), "{told}");
    intact(&home);
}
