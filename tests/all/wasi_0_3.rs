//! Components of WASI 0.3: each limit, wall and grant holds for them as for those of 0.2. The guest `hostile3` tries what the hostile guest
//! tries, through the interfaces of 0.3; [`Lab::call`] checks that nothing outside of `/work` changes and the next call is served.

use crate::harness::{Home, guest, root};
use crate::lab::{Lab, assert_limit, error};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::effect::overlay::SharedHistory;
use kiso_sandbox::effect::sink::{Permit, PermitParts};
use kiso_sandbox::effect::undo::{Origin, UndoLimits};
use kiso_sandbox::skill::{CallEnd, Caller, Limit};
use kiso_store::secret::Secrets;
use serde_json::json;
use std::collections::BTreeSet;
use tokio::sync::OnceCell;

/// Installs the guest, once.
async fn add() {
    static ADDED: OnceCell<()> = OnceCell::const_new();
    let add = || async {
        for manifest in ["kiso.toml", "manifests/short.toml"] {
            let manifest = root().join("tests/guests/hostile3").join(manifest);
            Lab::get().await.add(guest("hostile3"), Some(manifest), None).await.expect("a guest is installed");
        }
    };
    ADDED.get_or_init(add).await;
}

async fn call(skill: &str, mode: &str) -> CallEnd {
    add().await;
    Lab::get().await.call(skill, &format!("hostile3-{mode}"), json!({ "mode": mode })).await
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
    spin "hostile3-short" "spin" => Time;
    wait "hostile3-short" "wait" => Time;
    stuck "hostile3-short" "stuck" => Time;
    allocate "hostile3" "allocate" => Memory;
    print "hostile3" "print" => Output;
    write "hostile3" "write" => CallWrites;
    append "hostile3" "append" => CallWrites;
    length "hostile3" "length" => CallWrites;
    dirs "hostile3" "dirs" => Files;
    open "hostile3" "open" => OpenFiles;
    listings "hostile3" "listings" => Listings;
    streams "hostile3" "streams" => OpenFiles;
    futures "hostile3" "futures" => OpenFiles;
    calls "hostile3" "calls" => OpenFiles;
}

macro_rules! answers {
    ($($name:ident $mode:literal => $text:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run(async {
                    let answer = call("hostile3", $mode).await.result.unwrap_or_else(|error| panic!("{error}"));
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
    a_path_is_no_longer_than_in_linux "paths" => "ErrorCode::NameTooLong";
}

#[test]
fn a_command_ends_with_its_own_code() {
    run(async {
        for (mode, words) in [("exit7", "exit code 7"), ("abandon", "exit code 7"), ("fail", "before the end")] {
            let error = error(call("hostile3", mode).await);
            assert_eq!(error.code.as_str(), "exit", "{error}");
            assert!(error.message.contains(words), "{error}");
        }
    });
}

/// Rule: every operation passes through one module, whichever interface it comes from.
#[test]
fn changes_are_labelled_and_can_be_undone() {
    run(async {
        let lab = Lab::get().await;
        add().await;
        let session = SessionName::parse("hostile3-change").unwrap();
        lab.home.create_session(&session).unwrap();
        let work = lab.home.work_dir(&session);
        std::fs::create_dir(work.join("empty")).unwrap();
        for (name, text) in [("a.txt", "from a page"), ("gone.txt", "gone")] {
            std::fs::write(work.join(name), text).unwrap();
        }
        let tree = || {
            let entries = std::fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().file_name());
            (entries.collect::<BTreeSet<_>>(), std::fs::read_to_string(work.join("a.txt")).unwrap())
        };
        let before = tree();
        let labels = FileLabels::of_session(&lab.home, &session);
        let page = LabelId::from_label(&Label::world("web:a.example"));
        labels.wrote(&work.join("a.txt"), page).unwrap();

        let undo = SharedHistory::undo(lab.home.clone());
        let origin = Origin { run: "run".to_owned(), task: 1, seq: 1, place: 0 };
        let transaction = undo.begin(&session, origin, UndoLimits { max_bytes: 64 << 20, refuse: false }).unwrap();
        let permit = Permit::new(PermitParts { tool: "hostile3".to_owned(), ..PermitParts::default() });
        let secrets = Secrets::default();
        let by_hand = Caller::by_hand(&session, &secrets);
        let caller = Caller { transaction: Some(&transaction), permit: Some(&permit), ..by_hand };
        let ended = lab.skills.call("hostile3", &json!({ "mode": "change" }), caller).await;
        ended.result.unwrap_or_else(|error| panic!("{error}"));

        let holds = |label: LabelId| label.join(page) == label;
        assert!(holds(permit.read().get()), "it has read the page");
        let dir = std::fs::File::open(&work).unwrap();
        for name in ["dir", "dir/moved.txt", "second.txt", "link"] {
            assert!(holds(labels.of_entry(&dir, name.as_ref(), false)), "{name}");
        }
        assert!(holds(labels.label_of(std::fs::File::open(work.join("dir/moved.txt")).unwrap())), "the copy");
        assert_eq!(tree().1, "f", "it was shortened");
        drop(transaction);
        assert_eq!(tree(), before, "it was rolled back");
    });
}

#[test]
fn an_administrator_turns_them_off() {
    let home = Home::new();
    home.config("[engine]\nwasi_0_3 = false\n");
    let file = guest("flow");
    home.kiso(&["skill", "add", file.to_str().unwrap()]).exit(1).says(&["WASI 0.3", "wasi_0_3 = false"]);
}
