//! Pictures for models: attached to a message, loaded by a tool, and described for a model without vision.

use crate::harness::Home;
use crate::hooks::Sender;
use crate::model_server::{ModelServer, Seen};
use crate::served::Served;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc;

/// A picture of 90 x 60 pixels in one shade of gray, as a BMP file.
pub(crate) fn bmp(gray: u8) -> Vec<u8> {
    // Rows are padded to a multiple of four bytes.
    let pixels: Vec<u8> = (0..60).flat_map(|_| [vec![gray; 3 * 90], vec![0; 2]].concat()).collect();
    let mut bytes = b"BM".to_vec();
    for number in
        [54 + pixels.len() as u32, 0, 54, 40, 90, 60, 1 | 24 << 16, 0, pixels.len() as u32, 2_835, 2_835, 0, 0]
    {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(pixels);
    bytes
}

fn picture(home: &Home, name: &str, gray: u8) -> PathBuf {
    let path = home.path().join(name);
    std::fs::write(&path, bmp(gray)).unwrap();
    path
}

fn server(replies: Value) -> ModelServer {
    ModelServer::start(serde_json::from_value(json!({ "reply": replies })).unwrap())
}

fn configure(home: &Home, server: &ModelServer, more: &str) {
    let base = server.base_url();
    home.config(&format!("model = \"lab:m\"\n{more}\n[providers.lab]\nkind = \"openai\"\nbase_url = {base:?}\n"));
}

fn medium() -> Value {
    let routing = json!({ "effort": "medium", "categories": [], "tool_need": 1, "goal": "See", "durable": false });
    json!({ "role": "router", "text": routing.to_string() })
}

fn title() -> Value {
    json!({ "role": "titler", "text": "Pictures" })
}

fn asked(server: &ModelServer, role: &str) -> Vec<Seen> {
    server.requests().into_iter().filter(|seen| seen.role() == role).collect()
}

/// The addresses of the pictures in a request.
fn shown(seen: &Seen) -> Vec<String> {
    let messages = seen.body["messages"].as_array().unwrap();
    let parts = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    parts.filter_map(|part| part["image_url"]["url"].as_str()).map(str::to_owned).collect()
}

#[test]
fn an_attached_picture_is_shown_and_stays_in_the_conversation() {
    let answers = ["A grey field.", "Still grey."].map(|text| json!({ "role": "actor", "text": text }));
    let [first, second] = answers;
    let server = server(json!([medium(), first, title(), medium(), second]));
    let home = Home::new();
    configure(&home, &server, "");
    let file = picture(&home, "field.bmp", 128);
    let file = file.to_str().unwrap();
    home.kiso(&["run", "--file", file, "please look at this file and tell me the colour"]).ok();
    let ran = home.kiso(&["run", "and now have another look at the file, please"]);
    assert!(ran.ok().stdout.contains("Still grey."), "{ran:?}");
    let actor = asked(&server, "actor");
    let [first, second] = &actor[..] else { panic!("{} requests", actor.len()) };
    let [url] = &shown(first)[..] else { panic!("{:#}", first.body) };
    assert!(url.starts_with("data:image/"), "{url:.40}");
    assert_eq!(shown(second), [url.as_str()], "what was sent once is kept");
    // Both requests have the message's parts at the same place.
    let begins = |seen: &Seen| seen.body["messages"][1]["content"].as_array().unwrap()[..2].to_vec();
    assert_eq!(begins(first), begins(second));
    let trace = home.kiso(&["trace", "last", "--prompts"]);
    assert!(
        trace.stdout.contains("[picture] /work/field.bmp (90x60 pixels)") && !trace.stdout.contains("base64"),
        "{trace:?}"
    );
    server.finish();
}

#[test]
fn the_actor_looks_at_what_it_names() {
    let look = |args: Value| json!({ "role": "actor", "calls": [{ "name": "look", "args": args }] });
    let server = server(json!([
        medium(),
        look(json!({ "path": "field.bmp", "region": [0, 0, 0.5, 0.5] })),
        look(json!({ "path": "none.bmp" })),
        look(json!({ "path": "notes.txt" })),
        { "role": "actor", "text": "Grey." },
        title(),
    ]));
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    configure(&home, &server, "");
    let work = home.work("default");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::copy(picture(&home, "field.bmp", 10), work.join("field.bmp")).unwrap();
    std::fs::write(work.join("notes.txt"), "nothing to see").unwrap();
    assert!(home.kiso(&["run", "please look at the field in the file"]).ok().stdout.contains("Grey."));
    let actor = asked(&server, "actor");
    assert_eq!(actor.iter().map(|seen| shown(seen).len()).collect::<Vec<_>>(), [0, 1, 1, 1]);
    let prompt = actor[3].prompt();
    for part in [
        "/work/field.bmp, region 0,0,0.5,0.5 (45x30 pixels): BMP, 90x60.",
        "none.bmp: No such file or directory",
        "notes.txt: ",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    server.finish();
}

/// The error of a provider without support for pictures.
const NONE: &str = "Invalid content type. image_url is only supported by certain models.";

#[test]
fn a_model_without_eyes_says_so_or_has_another_look_for_it() {
    let refusal = json!({ "error": { "message": NONE } }).to_string();
    let replies = json!([medium(), { "role": "actor", "status": 400, "raw": refusal }, { "role": "actor", "text": "I cannot tell." }, title()]);
    let alone = server(replies);
    let home = Home::new();
    configure(&home, &alone, "");
    let file = picture(&home, "field.bmp", 200);
    let file = file.to_str().unwrap();
    let ran = home.kiso(&["run", "--file", file, "please look at this file and tell me the colour"]);
    let said = "[lab:m cannot see pictures; `[models] eyes` in config.toml names a model that describes them for it]";
    assert!(ran.ok().stdout.contains("I cannot tell.") && ran.stdout.contains(said), "{ran:?}");
    assert!(asked(&alone, "actor")[1].prompt().contains("You cannot see pictures"));
    alone.finish();

    // A model with vision describes the picture once, for this request and all later ones.
    let grey = json!({ "role": "actor", "text": "Grey.", "expect_contains": ["One grey field, 4271."] });
    let first = server(json!([medium(), grey.clone(), title(), medium(), grey]));
    let seeing =
        server(json!([{ "role": "eyes", "text": "One grey field, 4271.", "expect_contains": ["tell me the colour"] }]));
    let home = Home::new();
    let eyes = format!(
        "[models]\neyes = \"seeing:m\"\n[model_settings.\"lab:m\"]\nvision = \"no\"\n[providers.seeing]\nkind = \"anthropic\"\nbase_url = {:?}\n",
        seeing.base_url()
    );
    configure(&home, &first, &eyes);
    let file = picture(&home, "field.bmp", 200);
    let ran = home.kiso(&["run", "--file", file.to_str().unwrap(), "please look at this file and tell me the colour"]);
    assert!(ran.ok().stdout.contains("Grey.") && !ran.stdout.contains("cannot see"), "{ran:?}");
    home.kiso(&["run", "and now have another look at the file, please"]).ok();
    let described = &asked(&seeing, "eyes")[0];
    assert_eq!(described.body["messages"][0]["content"][1]["type"], "image", "{:#}", described.body);
    let usage = home.kiso(&["trace", "last", "--prompts"]);
    assert!(!usage.stdout.contains("[eyes]"), "it was asked once");
    seeing.finish();
    first.finish();
}

/// Rule: an answer after a test with the result "blind" does not change that to "sees".
#[test]
fn a_server_that_drops_pictures_is_found_out_by_a_test() {
    let look = json!({ "role": "actor", "calls": [{ "name": "look", "args": { "path": "field.bmp" } }] });
    let grey = json!({ "role": "actor", "text": "Grey.", "expect_contains": ["One grey field, 4271."] });
    // The test is an ordinary request, and the server answers it without having seen the picture.
    let dropping = server(json!([medium(), { "role": "worker", "text": "0" }, look, grey, title()]));
    let seeing = server(json!([{ "role": "eyes", "text": "One grey field, 4271." }]));
    let home = Home::new();
    let eyes = format!(
        "[models]\neyes = \"seeing:m\"\n[providers.seeing]\nkind = \"anthropic\"\nbase_url = {:?}\n",
        seeing.base_url()
    );
    configure(&home, &dropping, &eyes);
    let file = picture(&home, "field.bmp", 90);
    let ran = home.kiso(&["run", "--file", file.to_str().unwrap(), "please look at this file and tell me the colour"]);
    assert!(ran.ok().stdout.contains("Grey."), "{ran:?}");
    for request in asked(&dropping, "actor") {
        assert!(shown(&request).is_empty() && request.prompt().contains("another model describes it"), "{request:?}");
    }
    dropping.finish();
    seeing.finish();
}

/// Their text comes with the message, a table with its columns; a page without text is shown as a picture.
#[test]
fn attached_documents_stand_in_the_first_prompt() {
    let server = server(json!([medium(), { "role": "actor", "text": "500 EUR." }, title()]));
    let home = Home::new();
    configure(&home, &server, "");
    let rent = home.path().join("rent.pdf");
    std::fs::write(&rent, crate::documents::pdf(&["The rent is 500 EUR", "Due on the third"])).unwrap();
    let notes = home.path().join("notes.md");
    std::fs::write(&notes, "# Notes\nThe key is under the mat.\n").unwrap();
    let files = ["--file", rent.to_str().unwrap(), "--file", notes.to_str().unwrap()];
    home.kiso(&[&["run"][..], &files, &["please read the files and tell me how much it is"]].concat()).ok();
    let actor = asked(&server, "actor").remove(0);
    let prompt = actor.prompt();
    for part in ["--- rent.pdf ---", "The rent is 500 EUR", "Due on the third", "--- notes.md ---", "under the mat"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert_eq!(shown(&actor).len(), 1, "page 3 is a picture");
    assert!(prompt.contains("[picture: /work/rent.pdf, page 3 of 3 ("), "{prompt}");
    server.finish();
}

/// A server that transcribes every recording as the same text. Returns its address, and the received requests.
pub(crate) fn transcriber(text: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, sent) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok_and(|read| read > 0) {}
            for line in request.lines().map(str::to_ascii_lowercase) {
                length = line.strip_prefix("content-length: ").map_or(length, |number| number.parse().unwrap());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sender.send(request + &String::from_utf8_lossy(&body)).unwrap();
            let answer = json!({ "text": text }).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            (&stream).write_all((head + &answer).as_bytes()).unwrap();
        }
    });
    (address, sent)
}

#[test]
fn an_attached_recording_is_written_down() {
    let (address, sent) = transcriber(" The rent is due on Friday. ");
    let server = server(json!([medium(), { "role": "actor", "text": "On Friday." }, title()]));
    let home = Home::new();
    let voice = format!("[providers.voice]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\n");
    configure(&home, &server, &format!("[audio]\ntranscription_model = \"voice:w\"\n{voice}"));
    let note = home.path().join("note \"1\".ogg");
    std::fs::write(&note, b"OggS\0\x02 sound").unwrap();
    home.kiso(&["run", "--file", note.to_str().unwrap(), "please tell me when the rent in this file is due"]).ok();
    let heard = sent.recv().unwrap();
    for part in [
        "POST /v1/audio/transcriptions",
        "name=\"model\"\r\n\r\nw\r\n",
        "filename=\"note 1.ogg\"",
        "OggS\0\u{2} sound\r\n--",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    let prompt = asked(&server, "actor").remove(0).prompt();
    assert!(prompt.contains("--- note \"1\".ogg ---\nThe rent is due on Friday.\n"), "{prompt}");
    server.finish();
}

#[test]
fn a_recording_is_played_to_a_model_that_takes_it() {
    let (address, sent) = transcriber("The rent is due on Friday.");
    let answer = json!({ "role": "actor", "text": "On Friday." });
    let server = server(json!([medium(), answer, title(), medium(), answer]));
    let home = Home::new();
    let voice = format!(
        "[audio]\ntranscription_model = \"voice:w\"\n[providers.voice]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\n"
    );
    let heard = |answer: &str| format!("{voice}[model_settings.\"lab:m\"]\naudio = {answer:?}\n");
    configure(&home, &server, &heard("yes"));
    let (note, song) = (home.path().join("note.wav"), home.path().join("song.ogg"));
    std::fs::write(&note, b"RIFF\x09\0\0\0WAVE sound").unwrap();
    std::fs::write(&song, b"OggS\0\x02 song").unwrap();
    let files = ["--file", note.to_str().unwrap(), "--file", song.to_str().unwrap()];
    home.kiso(&[&["run"][..], &files, &["please tell me when the rent in these files is due"]].concat()).ok();
    configure(&home, &server, &heard("no"));
    home.kiso(&["run", "and now have another look at the files, please"]).ok();
    let actor = asked(&server, "actor");
    let sounds = |seen: &Seen| {
        let messages = seen.body["messages"].as_array().unwrap().clone();
        let parts = messages.into_iter().filter_map(|message| message["content"].as_array().cloned()).flatten();
        parts.filter(|part| part["type"] == "input_audio").map(|part| part["input_audio"].clone()).collect::<Vec<_>>()
    };
    let data = BASE64.encode(b"RIFF\x09\0\0\0WAVE sound");
    assert_eq!(sounds(&actor[0]), [json!({ "data": data, "format": "wav" })], "{:#}", actor[0].body);
    assert!(actor[0].prompt().contains("[recording: /work/note.wav]"), "{}", actor[0].prompt());
    assert!(
        actor[0].prompt().contains("--- song.ogg ---\nThe rent is due on Friday."),
        "other formats are written down"
    );
    assert!(sounds(&actor[1]).is_empty());
    let told = actor[1].prompt();
    assert!(told.contains("[recording: /work/note.wav. You cannot hear it; it was written down:]"), "{told}");
    assert_eq!(sent.try_iter().count(), 2, "each is written down once");
    server.finish();
}

/// A password in the message opens the attached file, for its text and its pages.
#[test]
fn an_attached_document_is_opened_with_a_password() {
    let look = json!({ "role": "actor", "calls": [{ "name": "look", "args": { "path": "locked.pdf" } }] });
    let server = server(json!([medium(), look, { "role": "actor", "text": "700 EUR." }, title()]));
    let home = Home::new();
    configure(&home, &server, "");
    let locked = home.path().join("locked.pdf");
    std::fs::write(&locked, include_bytes!("documents/locked.pdf")).unwrap();
    let asks = "the password is blue-otter-41; please read the file and tell me how much it is";
    home.kiso(&["run", "--file", locked.to_str().unwrap(), asks]).ok().prints(&["700 EUR."]);
    let actor = asked(&server, "actor");
    assert!(actor[0].prompt().contains("--- locked.pdf ---"), "{}", actor[0].prompt());
    assert!(actor[0].prompt().contains("The tax is 700 EUR"), "{}", actor[0].prompt());
    assert_eq!(shown(&actor[1]).len(), 1, "{}", actor[1].prompt());
    assert!(!actor[1].prompt().contains("otter"), "the model needs no password");
    server.finish();
}

/// Its passages are found later, each with its page.
#[test]
fn memory_takes_a_document_in() {
    let save = |file: &str| json!({ "role": "actor", "calls": [{ "name": "memory_save", "args": { "file": file } }] });
    let server = server(json!([
        medium(),
        save("rent.pdf"),
        save("none.pdf"),
        { "role": "actor", "text": "Remembered." },
        title(),
    ]));
    let home = Home::new();
    configure(&home, &server, "");
    let rent = home.path().join("rent.pdf");
    std::fs::write(&rent, crate::documents::pdf(&["The rent is 500 EUR", "Due on the third"])).unwrap();
    home.kiso(&["run", "--file", rent.to_str().unwrap(), "please remember what stands in the file"]).ok();
    let told = asked(&server, "actor").pop().unwrap().prompt();
    assert!(told.contains("Remembered, in 2 passages") && told.contains("none.pdf: there is no such file"), "{told}");
    let found = home.kiso(&["memory", "search", "due third"]);
    assert!(found.ok().stdout.contains("rent.pdf p. 2"), "{found:?}");
    assert!(found.stdout.contains("Due on the third"), "{found:?}");
    server.finish();
}

/// An event is processed as a subagent's message: its picture is shown like an attached one.
#[test]
fn a_picture_of_an_event_is_shown() {
    let server = server(json!([medium(), { "role": "actor", "text": "Nobody." }, title()]));
    let home = Home::new();
    configure(
        &home,
        &server,
        "[hooks.camera]\nauth = \"token\"\ntemplate = \"please look who is on {body.snapshot}\"\n",
    );
    let served = Served::start(&home);
    let sender = Sender::new(&home, &served, "camera");
    let snapshot = format!("data:image/bmp;base64,{}", BASE64.encode(&bmp(60)));
    let queued = sender.token(json!({ "snapshot": snapshot }).to_string().as_bytes()).expect(202);
    assert_eq!(served.reply(queued["message"].as_i64().unwrap()), "Nobody.");
    let actor = asked(&server, "actor").remove(0);
    assert_eq!(shown(&actor).len(), 1, "{}", actor.prompt());
    assert!(actor.prompt().contains("[picture: /work/snapshot-"), "{}", actor.prompt());
    assert_eq!(served.terminate(), 0);
}
