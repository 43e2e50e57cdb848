//! The workspace of a run's session, for prompts.

use super::run_context::RunContext;
use super::{DriveError, rights};
use crate::node::guidance::MAX_GUIDANCE;
use crate::tool::files;
use kiso_base::compute;
use kiso_base::home::{GUIDANCE, Home, SHARED, SessionFolder, SessionName};
use kiso_graph::outcome::Outcome;
use kiso_graph::run::Run;
use kiso_plan::label::Label;
use kiso_plan::prompt::FileCard;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::overlay::Overlay;

impl RunContext<'_> {
    /// Returns the files of the workspace for the roles of this run: those of the user, and those that were attached before the
    /// run first read the list, because the label of its answers covers them.
    pub(super) async fn files(&self, run: &Run) -> Result<Vec<FileCard>, DriveError> {
        Ok(self.labelled_files(run, |label| label.is_trusted() || run.expects(label)).await?.0)
    }

    /// Returns the files that `admits` accepts, with their joined label. Their authors may have made them hard to parse.
    pub(super) async fn labelled_files(
        &self,
        run: &Run,
        admits: impl Fn(&Label) -> bool,
    ) -> Result<(Vec<FileCard>, Label), DriveError> {
        let work = self.drive.home.open_work(&self.session)?;
        let labels = FileLabels::of_session(&self.drive.home, &self.session);
        let message = run.message_label().clone();
        let read = compute::run("reading the files of the workspace", move || {
            let cards = files::shown(&work, &labels, &message).into_iter();
            cards.map(|card| (files::label(&work, &card.path, &labels), card)).collect::<Vec<_>>()
        });
        let found = read.await.unwrap_or_else(|overdue| {
            // The list is optional, so a plan does not fail without it.
            tracing::warn!(session = %self.session, "{overdue}");
            Vec::new()
        });
        let mut found = found;
        let folders = self.drive.config.visible_folders(&self.drive.home, &self.session, self.caller);
        let folders = folders.unwrap_or_default();
        if !folders.is_empty() {
            let (home, session) = (self.drive.home.clone(), self.session.clone());
            let read = move || folder_cards(&home, &session, folders);
            let cards = compute::run("reading the names in the session's folders", read).await.unwrap_or_default();
            found.extend(cards.into_iter().map(|card| (Label::attached(), card)));
        }
        if rights::sees_shared(run) {
            let (home, session) = (self.drive.home.clone(), self.session.clone());
            let read = move || Overlay::open_shared(&home, &session).and_then(|overlay| overlay.shared_names(&session));
            let names = compute::run("reading the names of the shared files", read).await;
            found.extend(names.ok().and_then(Result::ok).and_then(|names| shared_card(names, &admits)));
        }
        let mut all = Label::default();
        let admitted = found.into_iter().filter(|(label, _)| admits(label));
        let cards = admitted.map(|(label, card)| {
            all.join(&label);
            card
        });
        Ok((cards.collect(), all))
    }

    /// Returns the files of an outcome that were removed or renamed since.
    pub(super) fn gone_files(&self, outcome: &Outcome) -> Vec<String> {
        if outcome.files.is_empty() {
            return Vec::new();
        }
        let work = self.drive.home.open_work(&self.session).ok();
        let is_there = |path: &str| work.as_ref().is_some_and(|work| files::is_file(work, path));
        outcome.files.iter().map(|file| file.path.clone()).filter(|path| !is_there(path)).collect()
    }

    /// Returns the workspace's guidance about kiso's identity and instructions: a few files of limited size.
    pub(super) fn guidance(&self) -> Option<Vec<String>> {
        let work = self.drive.home.open_work(&self.session).ok()?;
        let labels = FileLabels::of_session(&self.drive.home, &self.session);
        let names: Vec<&str> =
            GUIDANCE.iter().copied().filter(|name| files::is_trusted(&work, name, &labels)).collect();
        let found = files::heads(&work, &names, MAX_GUIDANCE);
        (!found.is_empty()).then_some(found)
    }
}

/// Maximum number of names that are shown for a folder, and maximum length of one in characters.
const MAX_NAMES: usize = 60;
const MAX_NAME: usize = 80;

/// Returns a card for the shared files, with the names that may be shown. `None` if there are none.
fn shared_card(names: Vec<(String, Label)>, admits: impl Fn(&Label) -> bool) -> Option<(Label, FileCard)> {
    let mut all = Label::default();
    let mut shown = Vec::new();
    for (name, label) in names.into_iter().filter(|(_, label)| admits(label)) {
        all.join(&label);
        shown.push(name.chars().take(MAX_NAME).collect::<String>());
    }
    let more = shown.len().saturating_sub(MAX_NAMES);
    shown.truncate(MAX_NAMES);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let notes =
        vec!["all of the user's conversations share these files".to_owned(), format!("has {}{more}", shown.join(", "))];
    (!shown.is_empty()).then(|| (all, FileCard { path: format!("{SHARED}/"), notes, ..FileCard::default() }))
}

/// Returns a card for each of a session's folders, with the names in it.
fn folder_cards(home: &Home, session: &SessionName, folders: Vec<SessionFolder>) -> Vec<FileCard> {
    let card = |(number, folder): (usize, SessionFolder)| {
        let overlay = Overlay::open(home, session, &folder).ok()?;
        let names = overlay.top_names(MAX_NAMES).ok()?;
        let shown: Vec<String> = names.shown.iter().map(|name| name.chars().take(MAX_NAME).collect()).collect();
        let more = match names.more {
            0 => String::new(),
            more => {
                let endings = names.endings.iter().map(|(ending, count)| format!("{count} .{ending}"));
                let endings: Vec<String> = endings.map(|text| text.chars().take(MAX_NAME).collect()).collect();
                format!(", and {more} more ({})", endings.join(", "))
            }
        };
        let mut notes = vec!["the user's folder; it changes only when the user accepts the difference".to_owned()];
        if number == 0 {
            notes.push("command lines and file tools begin here; name files of /work with their whole path".to_owned());
            notes.push("skills see files of /work only; cp others there".to_owned());
        }
        if !folder.write {
            notes.push("read-only".to_owned());
        }
        notes.push(format!("has {}{more}", shown.join(", ")));
        Some(FileCard { path: format!("{}/", folder.at), notes, ..FileCard::default() })
    };
    folders.into_iter().enumerate().filter_map(card).collect()
}
