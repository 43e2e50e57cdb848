//! Components and modules written by hand, which no compiler would produce.

use crate::lab::{Lab, assert_limit, error};
use kiso_sandbox::skill::{CallEnd, Limit, SkillError};
use kiso_tests::root;
use serde_json::json;
use std::path::PathBuf;

macro_rules! tested {
    ($name:ident) => {
        const _: fn() = $name;
    };
}
// A .wat file without a test function of its name does not compile.
kiso_tests::foreach_wat!(tested);

fn assembled(name: &str) -> PathBuf {
    let dir = root().join("tests/guests/wat");
    let wasm = wat::parse_file(dir.join(format!("{name}.wat"))).expect("the text is right");
    let out = std::env::temp_dir().join(format!("kiso-wat-{}", std::process::id()));
    std::fs::create_dir_all(&out).expect("there is room");
    let path = out.join(format!("{name}.wasm"));
    std::fs::write(&path, wasm).expect("there is room");
    path
}

async fn add(name: &str) -> Result<(), SkillError> {
    let manifest = root().join("tests/guests/wat/kiso.toml");
    Lab::get().await.add(assembled(name), Some(manifest), Some(name)).await
}

async fn call(name: &str) -> CallEnd {
    add(name).await.unwrap_or_else(|e| panic!("{e}"));
    Lab::get().await.call(name, &format!("wat-{name}"), json!({})).await
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads start").block_on(test);
}

macro_rules! limits {
    ($($name:ident $file:literal => $limit:ident;)*) => {
        $( #[test] fn $name() { run(async { assert_limit(call($file).await, Limit::$limit) }); } )*
    };
}

limits! {
    wat_realloc_loop "realloc-loop" => Time;
    wat_repeated_files "repeated-files" => Output;
    wat_start_loop "start-loop" => Time;
    wat_table_growth "table-growth" => Tables;
    wat_throw_loop "throw-loop" => Memory;
}

macro_rules! errors {
    ($($name:ident $file:literal => $code:literal $words:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let error = error(call($file).await);
                    assert_eq!(error.code.as_str(), $code, "{error}");
                    assert!(error.message.contains($words), "{error}");
                });
            }
        )*
    };
}

errors! {
    wat_exit_with_code "exit-with-code" => "exit" "exit code 7";
    wat_invalid_utf8 "invalid-utf8" => "bad-reply" "not UTF-8";
    wat_invalid_utf8_failure "invalid-utf8-failure" => "bad-reply" "not UTF-8";
    wat_many_files "many-files" => "bad-reply" "1000 files";
    wat_out_of_bounds "out-of-bounds" => "trap" "out of bounds";
    wat_preview1_exit3 "preview1-exit3" => "exit" "exit code 3";
    wat_throws "throws" => "trap" "threw an exception that it does not catch";
}

/// Tests of refused installations, with words that a person needs.
macro_rules! refused {
    ($($name:ident $file:literal => $($words:literal)*;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let error = add($file).await.expect_err("it is refused");
                    $( assert!(error.message.contains($words), "{error}"); )*
                    let lab = Lab::get().await;
                    lab.skills.find($file).expect_err("nothing is listed");
                });
            }
        )*
    };
}

refused! {
    wat_core_library "core-library" => "_start" "as a program";
    wat_big_memory "big-memory" => "more than any skill gets" "max_memory_mib";
    wat_big_table "big-table" => "more than any skill gets" "table_elements";
    wat_many_memories "many-memories" => "more than any skill gets" "202 core module instances";
    wat_newer_wasi "newer-wasi" => "does not fit this host";
    wat_no_exports "no-exports" => "exports nothing that can be called";
    wat_preview1_unknown "preview1-unknown" => "imports from";
    wat_resources "resources" => "no JSON form";
    wat_self_test_loop "self-test-loop" => "self-test failed" "2 s";
    wat_stream_of_records "stream-of-records" => "its function rows" "a stream, which has no JSON form";
    wat_unknown_import "unknown-import" => "acme:db/query@1.0.0" "acme:gpu/render";
    wat_wasi_candidate "wasi-candidate" => "does not offer: wasi:cli/environment@0.3.0-rc-2025-09-16" "wasi:cli/imports@0.3";
    wat_wrong_shape "wrong-shape" => "skill";
}

#[test]
fn wat_preview1() {
    run(async {
        let answer = call("preview1").await.result.unwrap_or_else(|e| panic!("{e}"));
        assert!(answer.text.starts_with('{') && answer.text.contains("\"workspace\":\"/work\""), "{}", answer.text);
    });
}
