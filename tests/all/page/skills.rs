//! Skills: the list, their requests and grants, installation, and calls by hand.

mod calls;
mod indexes;
mod usage;

use super::browser::{Browser, Tab, css, role};
use super::stage::{ACCOUNT, QUICK, Stage};
use super::themes::audit_in_both;
use crate::harness::{Home, guest, root};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A manifest for the component `echo` with requests that only an administrator can grant.
pub(super) const ASKING: &str = "[kiso]
type = \"skill\"
name = \"echo\"
version = \"0.1.0\"
description = \"Answers with its arguments\"

[kiso.skill]
category = \"test\"
secrets = [\"token\"]

[kiso.skill.args]
text = { type = \"string\", required = true, max_length = 400 }

[kiso.skill.needs]
http = [{ host = \"api.example.org\", methods = [\"GET\"] }]
memory_mib = 96
";

/// `echo` with this manifest inside, as one file.
#[track_caller]
fn packed(home: &Home, file: &str, manifest: &str) -> PathBuf {
    let (wasm, manifest, out) = (guest("echo"), home.file("kiso.toml", manifest), home.dir.path().join(file));
    let [wasm, manifest, to] = [&wasm, &manifest, &out].map(|path| path.to_str().unwrap());
    home.kiso(&["skill", "pack", wasm, "--manifest", manifest, "-o", to]).ok();
    out
}

#[track_caller]
fn grant(stage: &Stage) -> Value {
    stage.daemon.get("/skills/echo")["grant"].clone()
}

/// Whether a checkbox is checked.
#[track_caller]
fn ticked(tab: &Tab, name: &str) -> bool {
    tab.eval_on(role("checkbox", name), "it.checked") == true
}

#[track_caller]
fn items(tab: &Tab, list: &str) -> Vec<String> {
    let items = tab.eval_on(role("list", list), "[...it.children].map((one) => one.innerText.trim())");
    items.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

#[test]
fn all_skills_are_listed_and_one_is_told_in_full() {
    let install = |home: &Home| {
        let file = packed(home, "echo.wasm", ASKING);
        home.kiso(&["skill", "add", file.to_str().unwrap(), "--grant", "none"]).ok();
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, install) else { return };
    let tab = &stage.tab;
    let all = stage.daemon.get("/skills?limit=500")["items"].as_array().unwrap().clone();
    tab.goto(&stage.url("#/skills"));
    tab.wait("all are listed", || tab.count(css(".skills-card")) == all.len());
    tab.shows(&format!("{} skills", all.len()));
    for skill in &all {
        let name = skill["skill"].as_str().unwrap();
        let card = format!(
            "[...document.querySelectorAll('.skills-card')].find((it) => it.querySelector('h2').innerText === '{name}').innerText"
        );
        let card = tab.eval(&card);
        let card = card.as_str().unwrap();
        for part in [&skill["version"], &skill["category"], &skill["summary"]] {
            assert!(card.contains(part.as_str().unwrap()), "{part}: {card}");
        }
        let (asks, bundled) = (skill["asks"] != json!([]), skill["origin"] == "bundled");
        assert_eq!(card.contains("not granted"), asks && !bundled, "{card}");
        let reaches = asks && skill["asks"].to_string().contains("\"reach ");
        assert_eq!(card.contains("Asks before it opens a site"), bundled && reaches, "{card}");
    }
    tab.wait_of(
        css(".skills-card:has([href='#/skills/echo'])"),
        "['api.example.org', 'token', '96 MiB'].every((part) => it.querySelector('[aria-label=\"Requested, not granted\"]').innerText.includes(part))",
    );
    audit_in_both(tab, "skills");
    // A missing grant can be given here, after a review.
    tab.click(role("button", "Allow what echo requests"));
    tab.wait_for(role("dialog", "Change permissions of echo?"));
    tab.wait_of(role("list", "What changes"), "it.innerText.includes('api.example.org')");
    tab.click(role("button", "Change"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_gone(role("button", "Allow what echo requests"));
    assert_eq!(stage.daemon.get("/skills/echo")["asks"], json!([]));
    stage.home.kiso(&["skill", "grant", "echo", "--none"]).ok();
    tab.focus(role("searchbox", "Filter skills"));
    tab.insert_text("csv query");
    tab.wait("one is left", || tab.count(css(".skills-card")) == 1);
    tab.shows(&format!("1 of {}", all.len()));
    tab.insert_text(" and what nothing does");
    tab.shows("No matching skills");
    tab.reload();
    tab.click(role("link", "data"));
    tab.wait_until("location.hash === '#/skills/data'");
    let data = stage.daemon.get("/skills/data");
    tab.wait_for(role("heading", "data"));
    for region in ["About", "Permissions", "Arguments", "Example requests", "Try it"] {
        tab.wait_for(role("region", region));
    }
    for part in [&data["version"], &data["description"], &data["category"]] {
        tab.shows(part.as_str().unwrap());
    }
    tab.shows("Reads and writes files of the chat that uses it.");
    let _clipboard = tab.allow_clipboard();
    tab.click(role("button", "Copy the digest"));
    tab.wait("the digest is in the clipboard", || tab.clipboard() == data["digest"].as_str().unwrap());
    tab.click(css(".skills-tool > summary"));
    let described = data["tools"][0]["args"]["properties"]["where"]["description"].as_str().unwrap();
    tab.wait_of(role("region", "Arguments"), &format!("it.innerText.includes({})", json!(described)));
    assert!(!tab.has(role("button", "Actions for data")), "what is bundled cannot be removed");
    audit_in_both(tab, "a skill");
}

/// Reviews the selected changes, and checks that exactly these are listed.
#[track_caller]
fn reviews(tab: &Tab, told: &[&str]) {
    tab.click(role("button", "Review changes"));
    tab.wait_for(role("dialog", "Change permissions of echo?"));
    assert_eq!(items(tab, "What changes"), told);
}

/// A folder with a component and its manifest, as after a build; nothing has to be packed by hand.
#[test]
fn a_dropped_folder_installs_the_skill_with_its_manifest() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 409 /skills");
    let folder = stage.home.dir.path().join("my-skill");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(guest("echo"), folder.join("build.wasm")).unwrap();
    std::fs::write(folder.join("kiso.toml"), ASKING).unwrap();
    std::fs::write(folder.join("Cargo.toml"), "[package]\nname = \"other\"\n").unwrap();
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    tab.drop_file(css("main"), &folder);
    tab.wait_for(role("dialog", "Install echo?"));
    tab.click(role("button", "Install without permissions"));
    tab.wait_for(role("heading", "Permissions"));
    assert_eq!(stage.daemon.get("/skills/echo")["skill"], "echo");
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    std::fs::remove_file(folder.join("build.wasm")).unwrap();
    tab.drop_file(css("main"), &folder);
    tab.shows("No skill found");
}

/// The component and its manifest as two files, as after a download. The form shows arguments in the manifest's order, required
/// ones first.
#[test]
fn two_dropped_files_are_one_skill_and_its_arguments_keep_their_order() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 409 /skills");
    let args = "[kiso.skill.args]
zone = { type = \"string\" }
text = { type = \"string\", required = true, max_length = 400 }
amount = { type = \"int\" }
mode = { type = \"string\", enum = [\"z\", \"a\"] }
before = { type = \"string\" }
";
    let manifest =
        ASKING.replace("[kiso.skill.args]\ntext = { type = \"string\", required = true, max_length = 400 }\n", args);
    assert!(manifest.contains("zone"));
    let wasm = stage.home.dir.path().join("download.wasm");
    std::fs::copy(guest("echo"), &wasm).unwrap();
    let toml = stage.home.file("echo-skill.toml", &manifest);
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    tab.drop_files(css("main"), &[&toml, &wasm]);
    tab.wait_for(role("dialog", "Install echo?"));
    tab.click(role("button", "Install without permissions"));
    tab.wait_until("location.hash === '#/skills/echo'");
    tab.wait_for(role("form", "Call echo"));
    let order = ["zone", "text", "amount", "mode", "before"];
    let told = stage.daemon.get("/skills/echo");
    let declared: Vec<&String> = told["tools"][0]["args"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(declared, order, "the catalogue has them as the manifest does");
    let asked = tab.eval_on(
        css("form.call"),
        "[...it.querySelectorAll('[id^=\"arg.\"]:is(input, select, textarea)')].map((one) => one.id.slice(4))",
    );
    assert_eq!(asked, json!(["text", "zone", "amount", "mode", "before"]));
    // With two components, the manifest could belong to either.
    let other = stage.home.dir.path().join("other.wasm");
    std::fs::copy(guest("calc"), &other).unwrap();
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    tab.drop_files(css("main"), &[&toml, &wasm, &other]);
    tab.shows("Drop one skill at a time");
}

/// A component without a manifest that writes: installed from the page, it may only read until an administrator grants more.
#[test]
fn a_component_without_manifest_does_not_write_because_it_was_installed() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /skills").expects("answer: 409 /skills");
    let work = stage.home.work("default");
    std::fs::create_dir_all(&work).unwrap();
    let written = || work.join("written.txt").exists();
    let write = || {
        let call = json!({ "session": "default", "args": { "mode": "write" } }).to_string();
        stage.daemon.request("POST", "/skills/writer/call", Some(&call)).expect(200)
    };
    let install = |file: &std::path::Path| {
        tab.goto(&stage.url("#/skills"));
        tab.wait_for(role("button", "Install a skill"));
        tab.drop_file(css("main"), file);
        tab.wait_for(role("dialog", "Name this skill"));
        tab.wait("the field has the focus", || tab.focused() == "textbox \"Name\"");
        tab.insert_text("writer");
        tab.press("Enter");
    };
    let file = stage.home.dir.path().join("first.wasm");
    std::fs::copy(guest("command"), &file).unwrap();
    install(&file);
    tab.wait_until("location.hash === '#/skills/writer'");
    tab.shows("is installed");
    let refused = write();
    assert!(!written() && refused["ok"] == false, "{refused}");
    // The owner grants write access.
    stage.home.kiso(&["skill", "grant", "writer", "--write"]).ok();
    let allowed = write();
    assert!(written() && allowed["ok"] == true, "{allowed}");
    std::fs::remove_file(work.join("written.txt")).unwrap();
    // Another file of that name may come from anybody, so it does not get the first one's grant.
    let mut bytes = std::fs::read(&file).unwrap();
    // A custom section, which has no effect.
    bytes.extend([0, 5, 4, b'n', b'o', b't', b'e']);
    install(&stage.home.file("second.wasm", bytes));
    tab.wait_for(role("dialog", "Install writer?"));
    tab.shows("it may be another publisher's");
    audit_in_both(tab, "a component without manifest that may be somebody else's");
    assert!(
        !tab.has(role("button", "Install and grant everything")),
        "there is nothing to grant: {:?}",
        tab.names("button")
    );
    tab.click(css("dialog footer button:last-child"));
    tab.wait_gone(role("dialog", ""));
    tab.wait("it is the second one", || stage.daemon.get("/skills/writer")["grant"]["workspace"] == "read");
    let refused = write();
    assert!(!written() && refused["ok"] == false, "{refused}");
}

/// A component is installed by a drop; its requests are reviewed, granted, revoked, and the skill is removed.
#[test]
fn a_dropped_skill_is_granted_what_was_ticked() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 409 /skills");
    let file = packed(&stage.home, "echo.wasm", ASKING);
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    tab.drop_file(css("main"), &file);
    tab.wait_for(role("dialog", "Install echo?"));
    for right in ["Reach api.example.org", "Use the secret token", "Use 96 MiB of memory"] {
        assert!(!ticked(tab, right), "nothing is granted that nobody ticked: {right}");
    }
    audit_in_both(tab, "what a skill asks for");
    assert_eq!(stage.daemon.request("GET", "/skills/echo", None).status, 404, "nothing is installed yet");
    tab.click(role("button", "Install without permissions"));
    tab.wait_until("location.hash === '#/skills/echo'");
    tab.shows("echo 0.1.0 is installed");
    tab.wait_of(role("region", "Permissions"), "it.innerText.match(/not granted/g).length === 3");
    let none = grant(&stage);
    assert_eq!(none["workspace"], Value::Null, "it sees the workspace as its manifest asks");
    assert_eq!((&none["http"], &none["secrets"]), (&json!([]), &json!([])));

    // Granting: the changes are shown first, and nothing changes before the confirmation.
    tab.click(role("checkbox", "Reach api.example.org"));
    reviews(tab, &["echo may now reach api.example.org (GET)"]);
    audit_in_both(tab, "a change of a grant");
    tab.click(role("button", "Cancel"));
    tab.wait_gone(role("dialog", ""));
    assert_eq!(grant(&stage), none);
    tab.click(role("checkbox", "Use 96 MiB of memory"));
    reviews(tab, &["echo may now reach api.example.org (GET)", "echo may now use 96 MiB of memory"]);
    tab.click(role("button", "Change"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("region", "Permissions"), "it.innerText.match(/not granted/g).length === 1");
    let some = grant(&stage);
    assert_eq!((&some["http"][0]["host"], &some["secrets"]), (&json!("api.example.org"), &json!([])));
    assert_eq!(some["memory_mib"], 96, "{some}");
    tab.click(role("checkbox", "Use the secret token"));
    tab.click(role("checkbox", "Use 96 MiB of memory"));
    reviews(tab, &["echo may now use the secret token", "echo may no longer use 96 MiB of memory"]);
    tab.click(role("button", "Change"));
    tab.wait_gone(role("dialog", ""));
    tab.wait("the secret instead of the memory is granted", || {
        let some = grant(&stage);
        some["secrets"][0]["name"] == "token" && some["memory_mib"].is_null() && some["http"] != json!([])
    });
    tab.wait_of(role("region", "Permissions"), "it.innerText.match(/not granted/g).length === 1");
    tab.click(role("checkbox", "Use the secret token"));
    reviews(tab, &["echo may no longer use the secret token"]);
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    tab.click(role("button", "Undo"));
    assert!(ticked(tab, "Use the secret token"));
    tab.click(role("button", "Revoke all"));
    tab.wait_for(role("dialog", "Change permissions of echo?"));
    assert_eq!(
        items(tab, "What changes"),
        ["echo may no longer reach api.example.org", "echo may no longer use the secret token"]
    );
    tab.click(role("button", "Revoke"));
    tab.wait_gone(role("dialog", ""));
    tab.wait("nothing is granted", || grant(&stage) == none);

    // A skill is removed after a confirmation.
    tab.click(role("button", "Actions for echo"));
    tab.click(role("menuitem", "Remove"));
    tab.wait_for(role("dialog", "Remove echo?"));
    tab.click(role("button", "Remove"));
    tab.wait_until("location.hash === '#/skills'");
    tab.shows("echo was removed");
    assert_eq!(stage.daemon.request("GET", "/skills/echo", None).status, 404);
}

/// Installing the same file again asks only for missing grants, and keeps the others. Another file of the same name may come from
/// another publisher: the dialog says so, keeps nothing, and asks for everything.
#[test]
fn a_file_that_comes_again_asks_for_the_rest_and_another_one_for_all() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 409 /skills");
    let file = packed(&stage.home, "echo.wasm", ASKING);
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    tab.choose_file(css("input[aria-label='File of the skill']"), &file);
    tab.wait_for(role("dialog", "Install echo?"));
    tab.click(role("checkbox", "Reach api.example.org"));
    tab.click(role("button", "Install and grant selected"));
    tab.wait_until("location.hash === '#/skills/echo'");
    tab.wait_of(role("region", "Permissions"), "it.innerText.match(/not granted/g).length === 2");
    tab.drop_file(css("main"), &file);
    tab.wait_for(role("dialog", "Install echo?"));
    tab.shows("asks for more than it was granted");
    assert_eq!(tab.count(css("dialog input[type=checkbox]")), 2, "{:?}", tab.names("checkbox"));
    tab.click(role("checkbox", "Use 96 MiB of memory"));
    tab.click(role("button", "Install and grant selected"));
    tab.wait_gone(role("dialog", ""));
    tab.wait("both are granted", || {
        let granted = grant(&stage);
        granted["http"][0]["host"] == "api.example.org" && granted["memory_mib"] == 96
    });

    let more = ASKING.replace("0.1.0", "0.2.0").replace("http = [", "http = [{ host = \"*.tracker.example\" }, ");
    let other = packed(&stage.home, "newer.wasm", &more);
    tab.drop_file(css("main"), &other);
    tab.wait_for(role("dialog", "Install echo?"));
    tab.shows("it may be another publisher's");
    tab.shows("Nothing that was granted goes on to it");
    assert_eq!(tab.count(css("dialog input[type=checkbox]")), 4, "{:?}", tab.names("checkbox"));
    assert_eq!(tab.count(css("dialog input:checked")), 0);
    audit_in_both(tab, "a skill that may be somebody else's");
    tab.click(role("button", "Install without permissions"));
    tab.wait_gone(role("dialog", ""));
    tab.shows("version 0.2.0");
    let none = grant(&stage);
    assert_eq!((&none["http"], &none["secrets"], &none["memory_mib"]), (&json!([]), &json!([]), &Value::Null));

    // All requests at once.
    tab.drop_file(css("main"), &other);
    tab.wait_for(role("dialog", "Install echo?"));
    tab.click(role("button", "Select all"));
    assert!(ticked(tab, "Use 96 MiB of memory"));
    tab.click(role("button", "Install and grant selected"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("region", "Permissions"), "!it.innerText.includes('not granted')");
    assert_eq!(grant(&stage)["http"].as_array().unwrap().len(), 2);
    tab.shows("Each call has 96 MiB of memory");
}

#[test]
fn what_cannot_be_installed_says_why() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /skills").expects("answer: 409 /skills").expects("answer: 422 /skills");
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    // An Agent Skill is an archive or a single file with instructions. Replacing one by another of the same name needs a
    // confirmation.
    let greet = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";
    tab.drop_file(css("main"), &stage.home.file("greet/SKILL.md", greet));
    tab.wait_until("location.hash === '#/skills/greet'");
    let zip = crate::agent_skills::archive(&[("greet/SKILL.md", greet), ("greet/tone.md", "Be warm.\n")]);
    tab.drop_file(css("main"), &stage.home.file("greet.zip", zip));
    tab.wait_for(role("dialog", "Install greet?"));
    tab.shows("It takes the place of the installed one.");
    audit_in_both(tab, "another Agent Skill of the same name");
    tab.click(role("button", "Install"));
    tab.wait_gone(role("dialog", ""));
    assert_eq!(stage.daemon.get("/skills/greet")["agent_skill"]["files"].as_array().unwrap().len(), 2);
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("button", "Install a skill"));
    let count = stage.daemon.get("/skills?limit=500")["items"].as_array().unwrap().len();
    tab.drop_file(css("main"), &stage.home.file("holiday.wasm", "no component at all"));
    tab.wait_for(role("dialog", "Not installed"));
    let reason = stage.daemon.request("POST", "/skills", Some("no component at all")).body;
    let reason: Value = serde_json::from_str(&reason).unwrap();
    let message = reason["error"]["message"].as_str().unwrap().to_lowercase();
    tab.wait_of(css("dialog [role=alert]"), &format!("it.innerText.toLowerCase().includes({})", json!(message)));
    audit_in_both(tab, "a file that is not a skill");
    tab.click(css("dialog footer button"));
    tab.wait_gone(role("dialog", ""));

    // A file without a skill name needs one; the dialog stays until it is valid.
    tab.drop_file(css("main"), &guest("calc"));
    tab.wait_for(role("dialog", "Name this skill"));
    tab.wait("the field has the focus", || tab.focused() == "textbox \"Name\"");
    tab.insert_text("data");
    tab.press("Enter");
    tab.wait_of(role("textbox", "Name"), "it.ariaInvalid === 'true'");
    tab.wait_of(css("#install-name-wrong"), "it.innerText.includes('data')");
    audit_in_both(tab, "a name that is taken");
    tab.eval_on(role("textbox", "Name"), "it.select()");
    tab.insert_text("sums");
    tab.click(role("button", "Install"));
    tab.wait_until("location.hash === '#/skills/sums'");
    tab.wait_for(role("region", "Functions"));
    assert_eq!(stage.daemon.get("/skills?limit=500")["items"].as_array().unwrap().len(), count + 1);

    // Each plain function has its own form.
    let tools = stage.daemon.get("/skills/sums")["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    let offered = tab.eval_on(role("combobox", "Function"), "[...it.options].map((one) => one.value)");
    assert_eq!(offered, json!(names));
}
