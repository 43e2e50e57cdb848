//! A skill without kiso's interface: reads `{"args": {"mode": …}, "session", "workspace", "secrets"}` on standard input
//! and prints. Built for wasm32-wasip2 it is a `wasi:cli/command`, for wasm32-wasip1 a preview 1 core module.

use std::io::{Read, Write};

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("standard input is text");
    let call: serde_json::Value = serde_json::from_str(&input).expect("standard input is one JSON object");
    match call["args"]["mode"].as_str().unwrap_or("echo") {
        // The whole input, unchanged.
        "echo" => print!("{input}"),
        // The visible environment: variables, arguments, files.
        "list" => {
            let files = std::fs::read_dir("/work").map(|d| d.flatten().map(|e| e.file_name()).collect::<Vec<_>>());
            let vars: Vec<_> = std::env::vars().collect();
            println!("{vars:?} {:?} {files:?}", std::env::args().collect::<Vec<_>>());
        }
        // A file in the workspace, if it may write there.
        "write" => std::fs::write("/work/written.txt", "here").expect("the workspace takes a file"),
        // Error: the exit status. The standard library for preview 2 only passes on success or failure, which is 1.
        "exit3" => {
            println!("before the exit");
            std::process::exit(3);
        }
        // Output on standard error and success: still a reply.
        "complain" => {
            eprintln!("this is a warning");
            println!("done");
        }
        // Error: a trap; its message is on standard error.
        "panic" => panic!("the command gave up, on purpose"),
        // Limit: stdout.
        "print" => loop {
            let _ = std::io::stdout().write_all(&[b'.'; 4096]);
        },
        // Limit: the deadline.
        "loop" => loop {
            std::hint::black_box(());
        },
        // An empty reply.
        "silent" => {}
        // Output that is not UTF-8.
        "binary" => std::io::stdout().write_all(&[0xff, 0xfe, 0x00, b'x']).expect("standard output takes bytes"),
        other => panic!("no mode {other:?}"),
    }
}
