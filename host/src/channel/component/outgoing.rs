//! Prepares a letter for a component: its text, and the files that the run made.

use std::collections::HashSet;
use std::io::Read;

use crate::channel::Letter;
use crate::channel::sink::{ChannelSink, WITHHELD};
use kiso_agent::session::workspace;
use kiso_base::home::{Home, SessionName};
use kiso_plan::report::FileNote;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::skill::channel::{File, Letter as Outgoing};

/// Maximum files of one letter.
const MAX_FILES: usize = 10;

/// Maximum bytes of one file, and of all files of a letter: larger ones are not sent, and the text names them.
const MAX_FILE: u64 = 8 << 20;
const MAX_ALL: u64 = 16 << 20;

/// Keeps only the picture of a chart that services can show.
fn once(mut notes: Vec<FileNote>) -> Vec<FileNote> {
    let pictures: HashSet<String> =
        notes.iter().filter_map(|note| note.path.strip_suffix(".png").map(str::to_owned)).collect();
    notes.retain(|note| note.path.strip_suffix(".svg").is_none_or(|path| !pictures.contains(path)));
    notes
}

/// Returns the letter for a component. Leaves out files that no longer exist, and files that may not be sent to `sink`; the
/// text names the latter.
pub(super) async fn prepare(home: &Home, session: &SessionName, letter: &Letter, sink: &ChannelSink) -> Outgoing {
    let mut text = match (&letter.message, &letter.text) {
        (Some(message), _) => message.text.clone(),
        (None, text) => text.clone().unwrap_or_default(),
    };
    let notes = letter.message.as_ref().and_then(|message| message.reply.as_ref()).map(|reply| reply.files.clone());
    let (home, session, sink) = (home.clone(), session.clone(), sink.clone());
    let read = tokio::task::spawn_blocking(move || {
        let (mut files, mut withheld, mut room) = (Vec::new(), Vec::new(), MAX_ALL);
        let labels = FileLabels::of_session(&home, &session);
        for note in once(notes.unwrap_or_default()) {
            if files.len() == MAX_FILES {
                break;
            }
            let Some((file, meta)) = workspace::open_published(&home, &session, &note.path) else { continue };
            // The label of its present content and name: a later run may have written to it.
            let label = || home.open_work(&session).map(|work| labels.of_entry(&work, note.path.as_ref(), false));
            if !labels.is_empty() && !label().is_ok_and(|label| sink.admits(&label.join(LabelId::session()).label())) {
                withheld.push(note.path);
                continue;
            }
            let most = MAX_FILE.min(room);
            let mut content = Vec::new();
            // The file may grow while it is read.
            let is_read = meta.len() <= most && file.take(most + 1).read_to_end(&mut content).is_ok();
            if !is_read || content.is_empty() || content.len() as u64 > most {
                continue;
            }
            room -= content.len() as u64;
            let name = note.path.rsplit('/').next().unwrap_or(&note.path).to_owned();
            files.push(File { name, media_type: note.media_type, content });
        }
        (files, withheld)
    });
    let (files, withheld) = read.await.unwrap_or_default();
    if !withheld.is_empty() {
        text.push_str(&format!("\n\n{}: {WITHHELD}", withheld.join(", ")));
    }
    Outgoing { id: letter.id.clone(), text, files, choices: Vec::new() }
}
