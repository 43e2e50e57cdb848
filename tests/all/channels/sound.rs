//! Recordings through a channel: a voice note is a message, any other recording is an attachment.

use super::bot_api::BotApi;
use super::telegram::{ADA, BOB, config, pair, start};
use super::{all_answered, asked};
use crate::harness::{Home, wait_until};
use crate::pictures::transcriber;
use serde_json::json;

/// The text of a voice note is its sender's message, and never a command.
#[test]
fn a_voice_note_is_a_message_and_other_recordings_are_files() {
    let (address, heard) = transcriber(" $ /status of the rent? ");
    let api = BotApi::open();
    let home = Home::new();
    let audio = format!(
        "[audio]\ntranscription_model = \"voice:w\"\n[providers.voice]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\n"
    );
    home.config(&config(&api, &audio));
    let served = start(&home);
    pair(&home, &api, ADA, &["--owner"]);
    let file = |bytes: &[u8]| json!({ "file_id": api.keep(bytes), "duration": 2, "file_size": bytes.len() });
    let id = api.put(ADA, json!({ "voice": file(b"OggS note") }));
    wait_until("the voice note", || asked(&served, "channel.bot").len() == 1);
    let note = format!("status of the rent?\n\n(A voice note; its sound is in voice-{id}.ogg.)");
    assert_eq!(asked(&served, "channel.bot"), [note.as_str()]);
    assert!(heard.recv().unwrap().contains("OggS note"));
    let work = home.work("channel.bot");
    assert_eq!(std::fs::read(work.join(format!("voice-{id}.ogg"))).unwrap(), b"OggS note", "the sound is kept");
    all_answered(&served, "channel.bot");
    assert_eq!(api.count("- model: reflex"), 0, "no command was carried out: {:?}", api.texts());

    // A song, or a recorded lecture, is data.
    let mut song = file(b"ID3 song");
    song["file_name"] = json!("song.mp3");
    api.put(ADA, json!({ "audio": song }));
    wait_until("the song", || asked(&served, "channel.bot").len() == 2);
    // A voice note with a caption is a message with a file.
    let id = api.put(ADA, json!({ "voice": file(b"OggS more"), "caption": "keep this" }));
    wait_until("the note with words", || asked(&served, "channel.bot").len() == 3);
    let said = asked(&served, "channel.bot");
    assert_eq!(said[1..], ["Files: song.mp3".to_owned(), format!("keep this\n\nFiles: voice-{id}.ogg")]);

    // Only the owner's voice notes are instructions.
    pair(&home, &api, BOB, &[]);
    let id = api.put(BOB, json!({ "voice": file(b"OggS from Bob") }));
    let session = "channel.bot.2";
    wait_until("the other's note", || !asked(&served, session).is_empty());
    let said = asked(&served, session).concat();
    assert!(said.contains(&format!("Files: voice-{id}.ogg")) && !said.contains("status of the rent"), "{said}");
    assert!(heard.try_recv().is_err(), "nothing else was written down");
    assert_eq!(served.terminate(), 0);
}
