//! Every mode of the hostile guest: each ends with its own typed error, touches nothing outside `/work`, and leaves a host that
//! serves the next call. [`Lab::call`] checks the last two.

use crate::lab::{Lab, assert_limit, error};
use kiso_plan::code::Blame;
use kiso_sandbox::skill::{CallEnd, Limit};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

macro_rules! tested {
    ($name:ident) => {
        const _: fn() = $name;
    };
}
// A mode in the guest's manifest without a test function below does not compile.
kiso_tests::foreach_mode!(tested);

async fn hostile(mode: &str) -> CallEnd {
    Lab::get().await.call("hostile", &format!("mode-{mode}"), json!({ "mode": mode })).await
}

/// A test of a limit.
macro_rules! limits {
    ($($name:ident $skill:literal $mode:literal => $limit:ident;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let lab = Lab::get().await;
                    let ended = lab.call($skill, &format!("mode-{}", $mode), json!({ "mode": $mode })).await;
                    assert_limit(ended, Limit::$limit);
                });
            }
        )*
    };
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads start").block_on(test);
}

limits! {
    mode_loop "hostile-short" "loop" => Time;
    mode_sleep "hostile-short" "sleep" => Time;
    mode_allocate "hostile" "allocate" => Memory;
    mode_grow "hostile" "grow" => Memory;
    mode_recurse "hostile" "recurse" => Stack;
    mode_host_calls "hostile" "host-calls" => HostCalls;
    mode_pollables "hostile" "pollables" => OpenFiles;
    mode_fields "hostile" "fields" => Headers;
    mode_write "hostile" "write" => CallWrites;
    mode_sparse_length "hostile" "sparse-length" => CallWrites;
    mode_sparse_offset "hostile" "sparse-offset" => CallWrites;
    mode_append "hostile" "append" => CallWrites;
    mode_rewrite "hostile" "rewrite" => CallWrites;
    mode_files "hostile" "files" => Files;
    mode_dirs "hostile" "dirs" => Files;
    mode_deep_dirs "hostile" "deep-dirs" => Depth;
    mode_symlinks "hostile" "symlinks" => Files;
    mode_open "hostile" "open" => OpenFiles;
    mode_print "hostile" "print" => Output;
    mode_eprint "hostile" "eprint" => Output;
    mode_log "hostile" "log" => Log;
    mode_progress "hostile" "progress" => HostCalls;
    mode_big_reply "hostile" "big-reply" => Output;
    mode_big_data "hostile" "big-data" => Output;
}

/// A test of an error that is not a limit: its code, and words that a person needs.
macro_rules! errors {
    ($($name:ident $mode:literal => $code:literal $words:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let error = error(hostile($mode).await);
                    assert_eq!((error.code.as_str(), error.blame), ($code, Blame::Skill), "{error}");
                    assert!(error.message.contains($words), "{error}");
                });
            }
        )*
    };
}

errors! {
    mode_recurse_frames "recurse-frames" => "trap" "crashed";
    mode_random "random" => "trap" "crashed";
    mode_trap "trap" => "trap" "gave up";
    mode_panic "panic" => "trap" "the guest gave up, on purpose";
    mode_exit3 "exit3" => "exit" "exit code";
    mode_exit0 "exit0" => "exit" "exit code 0";
    mode_bad_data "bad-data" => "bad-reply" "not JSON";
    mode_deep_data "deep-data" => "bad-reply" "nested more than 64 levels deep";
    mode_many_reply_files "many-reply-files" => "bad-reply" "101 files";
    mode_reply_file "reply-file" => "bad-reply" "no such file";
    mode_reply_link "reply-link" => "bad-reply" "regular file";
    mode_reply_dir "reply-dir" => "bad-reply" "regular file";
    mode_failure "failure" => "not-today" "try tomorrow";
}

/// A test of a mode that checks its attempts itself, and answers if all of them failed.
macro_rules! walls {
    ($($name:ident $skill:literal $mode:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let lab = Lab::get().await;
                    let ended = lab.call($skill, &format!("mode-{}", $mode), json!({ "mode": $mode })).await;
                    let answer = ended.result.unwrap_or_else(|e| panic!("{e}"));
                    assert!(!answer.text.is_empty());
                });
            }
        )*
    };
}

walls! {
    mode_slow "hostile" "slow";
    mode_huge_read "hostile" "huge-read";
    mode_kv_flood "hostile" "kv-flood";
    mode_publish_flood "hostile" "publish-flood";
    mode_publish_escape "hostile" "publish-escape";
    mode_secrets "hostile" "secrets";
    mode_net "hostile" "net";
    mode_work_when_none "hostile-no-work" "work-when-none";
}

#[test]
fn mode_write_when_read_only() {
    run(async {
        let lab = Lab::get().await;
        let session = kiso_base::home::SessionName::parse("mode-read-only").expect("a plain name");
        lab.home.create_session(&session).expect("there is room");
        std::fs::write(lab.home.work_dir(&session).join("given.txt"), "given").expect("there is room");
        let ended = lab.call("hostile-read-only", "mode-read-only", json!({ "mode": "write-when-read-only" })).await;
        ended.result.unwrap_or_else(|e| panic!("{e}"));
        let entries = std::fs::read_dir(lab.home.work_dir(&session)).expect("it is there").count();
        assert_eq!(entries, 2, "given.txt and pub/ are all there is");
    });
}

#[test]
fn mode_env() {
    run(async {
        let answer = hostile("env").await.result.unwrap_or_else(|e| panic!("{e}"));
        for outside in ["HOME", "PATH", "KISO_HOME", "CARGO"] {
            assert!(!answer.text.contains(outside), "{}", answer.text);
        }
    });
}

#[test]
fn mode_produce() {
    run(async {
        let answer = hostile("produce").await.result.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((answer.files[0].path.as_str(), answer.files[0].bytes), ("made.bin", 64 << 10));
    });
}

#[test]
fn mode_flaky() {
    run(async {
        let first = error(hostile("flaky").await);
        assert!(first.retryable, "{first}");
        let again = hostile("flaky").await;
        again.result.expect("what kv counted lasts from one call to the next");
    });
}

/// A guest cannot choose how the host handles an error.
#[test]
fn mode_forged_failure() {
    run(async {
        let lab = Lab::get().await;
        for (forged, code) in [
            ("trap", "failed"),
            ("limit", "failed"),
            ("busy", "failed"),
            ("unknown-skill", "failed"),
            ("name-taken", "failed"),
            ("timeout", "failed"),
            ("unknown_skill", "failed"),
            ("effect-denied", "failed"),
            ("denied", "denied"),
        ] {
            let args = json!({ "mode": "forged-failure", "path": forged });
            let error = error(lab.call("hostile", "mode-forged-failure", args).await);
            assert_eq!((error.code.as_str(), error.blame), (code, Blame::Skill), "{forged}: {error}");
        }
    });
}

#[test]
fn mode_long_failure() {
    run(async {
        let error = error(hostile("long-failure").await);
        assert!(error.message.len() <= 4 << 10, "{} bytes are kept", error.message.len());
    });
}

/// Every way out of the workspace, by its own links and by links from outside.
#[test]
fn mode_escape() {
    run(async {
        let lab = Lab::get().await;
        let session = kiso_base::home::SessionName::parse("mode-escape").expect("a plain name");
        lab.home.create_session(&session).expect("there is room");
        let given = lab.home.work_dir(&session).join("given");
        std::fs::create_dir(&given).expect("there is room");
        for (name, target) in [
            ("root", "/"),
            ("etc", "/etc"),
            ("up", "../../.."),
            ("store", "../../../../store.db"),
            ("behind", "x/../../.."),
        ] {
            std::os::unix::fs::symlink(target, given.join(name)).expect("there is room");
        }
        let answer = lab.call("hostile", "mode-escape", json!({ "mode": "escape" })).await.result;
        let tried = answer.unwrap_or_else(|e| panic!("{e}")).data.expect("what was tried");
        assert!(tried["tried"].as_array().expect("a list").len() > 300, "{tried}");
    });
}

/// On the host, a directory is swapped for a link to the outside while a guest opens through it.
#[test]
fn mode_race_open() {
    run(async {
        let lab = Lab::get().await;
        let session = kiso_base::home::SessionName::parse("mode-race-open").expect("a plain name");
        lab.home.create_session(&session).expect("there is room");
        let work = lab.home.work_dir(&session);
        std::fs::create_dir(work.join("real")).expect("there is room");
        std::fs::write(work.join("real/store.db"), "inside").expect("there is room");
        std::os::unix::fs::symlink("../../..", work.join("link")).expect("there is room");
        let over = Arc::new(AtomicBool::new(false));
        let (swapped, first) = std::sync::mpsc::channel();
        let swapping = std::thread::spawn({
            let over = over.clone();
            move || {
                while !over.load(Relaxed) {
                    for (from, to) in [("real", "door"), ("door", "real"), ("link", "door"), ("door", "link")] {
                        std::fs::rename(work.join(from), work.join(to)).expect("nobody else moves it");
                    }
                    let _ = swapped.send(());
                }
            }
        });
        first.recv().expect("it swaps");
        let ended = lab.call("hostile", "mode-race-open", json!({ "mode": "race-open", "amount": 2_000 })).await;
        over.store(true, Relaxed);
        swapping.join().expect("it swaps to the end");
        ended.result.unwrap_or_else(|e| panic!("{e}"));
    });
}

/// A tree of the maximum depth can be created; the error for the next level names the depth.
#[test]
fn directories_nest_as_deep_as_is_said() {
    run(async {
        let lab = Lab::get().await;
        let made = lab.call("hostile", "just-deep", json!({ "mode": "deep-dirs", "amount": 62 })).await;
        made.result.unwrap_or_else(|e| panic!("{e}"));
        let error = error(lab.call("hostile", "too-deep", json!({ "mode": "deep-dirs", "amount": 70 })).await);
        assert!(error.message.contains("nested deeper than its 64 levels"), "{error}");
    });
}

/// Ten guests that loop and two more that work: all of them end.
#[test]
fn spinning_guests_do_not_stop_the_others() {
    run(async {
        let lab = Lab::get().await;
        let spins = (0..5).map(|i| async move {
            let ended = lab.call_only("hostile-short", &format!("spin-{i}"), json!({ "mode": "loop" })).await;
            assert_limit(ended, Limit::Time);
        });
        let spins = async {
            let mut all = Vec::new();
            for spin in spins {
                all.push(spin);
            }
            for_all(all).await;
        };
        let work = lab.call("echo", "beside-spins", json!({ "text": "quick" }));
        let ((), echo) = tokio::join!(spins, work);
        assert_eq!(echo.result.expect("it is served").text, "quick");
    });
}

/// Runs futures concurrently.
async fn for_all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut pinned: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        pinned.retain_mut(|f| f.as_mut().poll(cx).is_pending());
        if pinned.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Bytes that a call wrote count against the session, and deleted bytes are available to the next call.
#[test]
fn a_full_workspace_refuses_the_next_call_and_recovers() {
    run(async {
        let lab = Lab::get().await;
        let session = kiso_base::home::SessionName::parse("full").expect("a plain name");
        lab.home.create_session(&session).expect("there is room");
        let work = lab.home.work_dir(&session);
        for i in 0..4_000 {
            std::fs::write(work.join(format!("{i}")), "").expect("there is room");
        }
        assert_limit(lab.call("hostile", "full", json!({ "mode": "produce" })).await, Limit::Files);
        for i in 0..100 {
            std::fs::remove_file(work.join(format!("{i}"))).expect("it is there");
        }
        lab.call("hostile", "full", json!({ "mode": "produce" })).await.result.expect("there is room again");
    });
}
