//! Components of WASI 0.3: each limit, wall and grant holds for them as for those of 0.2. The guest `later` tries what the hostile guest
//! tries, through the interfaces of 0.3; [`Lab::call`] checks that nothing outside of `/work` changes and the next call is served.

use crate::harness::{Home, guest, root};
use crate::lab::{Lab, assert_limit, error};
use kiso_sandbox::skill::{CallEnd, Limit};
use serde_json::json;
use tokio::sync::OnceCell;

async fn call(skill: &str, mode: &str) -> CallEnd {
    static ADDED: OnceCell<()> = OnceCell::const_new();
    let lab = Lab::get().await;
    let add = || async {
        for manifest in ["kiso.toml", "manifests/short.toml"] {
            let manifest = root().join("tests/guests/later").join(manifest);
            lab.add(guest("later"), Some(manifest), None).await.expect("a guest is installed");
        }
    };
    ADDED.get_or_init(add).await;
    lab.call(skill, &format!("later-{mode}"), json!({ "mode": mode })).await
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads start").block_on(test);
}

macro_rules! limits {
    ($($name:ident $skill:literal $mode:literal => $limit:ident;)*) => {
        $( #[test] fn $name() { run(async { assert_limit(call($skill, $mode).await, Limit::$limit) }); } )*
    };
}

limits! {
    spin "later-short" "spin" => Time;
    wait "later-short" "wait" => Time;
    stuck "later-short" "stuck" => Time;
    allocate "later" "allocate" => Memory;
    print "later" "print" => Output;
    write "later" "write" => CallWrites;
    append "later" "append" => CallWrites;
    length "later" "length" => CallWrites;
    dirs "later" "dirs" => Files;
    open "later" "open" => OpenFiles;
    listings "later" "listings" => Listings;
    streams "later" "streams" => OpenFiles;
    futures "later" "futures" => OpenFiles;
    calls "later" "calls" => OpenFiles;
}

macro_rules! answers {
    ($($name:ident $mode:literal => $text:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let answer = call("later", $mode).await.result.unwrap_or_else(|error| panic!("{error}"));
                    assert_eq!(answer.text, $text);
                });
            }
        )*
    };
}

answers! {
    a_file_is_written_and_read "copy" => "text";
    output_after_the_return_is_part_of_the_reply "behind" => "text";
    no_way_leads_out "held" => "held";
}

#[test]
fn a_command_ends_with_its_own_code() {
    run(async {
        for (mode, words) in [("exit7", "exit code 7"), ("fail", "before the end")] {
            let error = error(call("later", mode).await);
            assert_eq!(error.code.as_str(), "exit", "{error}");
            assert!(error.message.contains(words), "{error}");
        }
    });
}

#[test]
fn an_administrator_turns_them_off() {
    let home = Home::new();
    home.config("[engine]\nwasi_0_3 = false\n");
    let file = guest("flow");
    home.kiso(&["skill", "add", file.to_str().unwrap()]).exit(1).says(&["WASI 0.3", "wasi_0_3 = false"]);
}
