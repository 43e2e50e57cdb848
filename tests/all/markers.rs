//! Which texts reach which role: words are planted where a text enters kiso, and every request to a model is searched for them.
//!
//! The expected result is the table of the context ([`TABLE`]): a request has only the sections of its role's column, each of
//! these occurs at least once, and a planted word is in exactly those cells that its pieces have. Secrets are nowhere: in no
//! request, event, recorded prompt, output or file of the home.

mod story;

use self::story::{LATE, PASSWORD, PIN, Told, holding, tell};
use crate::model_server::Seen;
use kiso_agent::node::built_in_prompt;
use kiso_agent::node::prompt::in_form;
use kiso_agent::node::prompt::select_lines;
use kiso_base::role::{Cell, Role};
use kiso_plan::prompt::{Piece, Row, TABLE};
use rusqlite::types::ValueRef;
use std::collections::BTreeSet;

/// The texts outside the sections: a role's own answers, its calls, their results, and notes of the host.
const TURNS: &str = "(turns)";

/// A word, and the pieces that may contain it. It is in each of them, for each role that gets the piece.
struct Mark {
    word: &'static str,
    pieces: &'static [Piece],
    /// Cells that it does not reach in this story, such as the worker's of an abandoned goal.
    not: &'static [(Role, Piece)],
    /// Roles that have it in their turns. Those of [`TALK`] are not checked.
    turns: &'static [Role],
}

const fn mark(word: &'static str, pieces: &'static [Piece]) -> Mark {
    Mark { word, pieces, not: &[], turns: &[] }
}

const fn some(word: &'static str, pieces: &'static [Piece], not: &'static [(Role, Piece)]) -> Mark {
    Mark { word, pieces, not, turns: &[] }
}

const fn own(of: Mark, turns: &'static [Role]) -> Mark {
    Mark { turns, ..of }
}

/// Roles whose turns are the session's conversation.
const TALK: [Role; 2] = [Role::Actor, Role::Worker];

/// Lists that a role's own turns replace while its conversation continues.
const OWN: [Piece; 2] = [Piece::PlannerLane, Piece::ReasoningLane];

#[rustfmt::skip]
const MARKS: &[Mark] = {
    use Piece::*;
    use Role::{Actor, Planner, Reasoner, Reviewer, Worker};
    &[
        some("mkasked", &[NewMessage, OriginalMessage, Messages, Tail, Exchange, Compress, Turn], &[(Reasoner, OriginalMessage)]),
        mark("mkreplied", &[Messages, Tail, Exchange, Compress, Turn]),
        mark("mknew", &[NewMessage, OriginalMessage, Messages, Tail, Compress]),
        mark("mkguide", &[Guidance]),
        mark("mkcore", &[Core]),
        // The actor gets the facts that the user stated.
        some("mkfact", &[Facts, Consolidate], &[(Actor, Facts)]),
        some("mkmerged", &[Facts, Memory], &[(Actor, Facts)]),
        mark("mkstated", &[Facts, Consolidate, Known]),
        mark("mksummary", &[Summary]),
        mark("mkaim", &[Directive]),
        mark("mkcard", &[Skills, Readiness, Categories]),
        mark("mklisted", &[AgentSkills]),
        mark("mktaught", &[Instructions]),
        mark("mkcategory", &[Skills, SkillEnvironment, Readiness, Categories]),
        own(mark("mkfile", &[Environment, Readiness, LookedAt]), &[Reviewer]),
        own(mark("mkchatter", &[PlannerLane]), &[Planner]),
        // The planner has it in its lane, so it is not among the messages.
        some("mkearly", &[Replies, Messages, Tail, Compress], &[(Planner, Messages)]),
        own(some("mkgoal", &[Goal, PlannerLane, ReplanHistory], &[(Worker, Goal)]), &[Planner]),
        some("mknext", &[Goal], &[(Reviewer, Goal), (Reasoner, Goal)]),
        own(mark("mkremaining", &[Plan, PlannerLane, Remaining]), &[Planner]),
        own(some("mkdetail", &[Task, Plan, PlannerLane, Evidence, Completed, ReplanHistory], &[(Worker, Task), (Reviewer, Evidence)]), &[Planner]),
        own(some("mkinjected", &[Task, Plan, Evidence, Failure, ReplanHistory], &[(Worker, Task), (Reasoner, Evidence), (Actor, Evidence), (Reviewer, Evidence)]), &[Reviewer]),
        some("mkwritten", &[Task], &[(Reviewer, Task), (Reasoner, Task)]),
        own(some("mkexpected", &[Expect], &[(Worker, Expect)]), &[Planner]),
        some("mkpolite", &[Expect], &[(Reviewer, Expect), (Reasoner, Expect)]),
        // A call is in the window of the next turn, with its result.
        own(some("mkechoed", &[Evidence, Completed, ReplanHistory, Messages], &[(Reviewer, Evidence)]), &[Planner]),
        some("mkacted", &[Output, Transcript, Evidence, Completed], &[(Reviewer, Evidence), (Reviewer, Transcript)]),
        mark("mktool", &[Transcript, Messages]),
        own(mark("mkbrief", &[Brief, ReasoningLane]), &[Reasoner]),
        own(mark("mkaction", &[Brief, ReasoningLane]), &[Reasoner]),
        own(mark("mkfix", &[Feedback, ReplanHistory]), &[Reviewer]),
        some("mkreason", &[Feedback, Failure, ReplanHistory], &[(Reasoner, Feedback)]),
        own(mark("mkunplanned", &[]), &[Planner]),
        own(mark("mkunbriefed", &[]), &[Reasoner]),
        own(mark("mkunreviewed", &[]), &[Reviewer]),
    ]
};

fn role(seen: &Seen) -> Role {
    Role::named(seen.role()).expect("every request says its role")
}

fn row(title: &str) -> &'static Row {
    TABLE.iter().find(|row| row.title == title).unwrap_or_else(|| panic!("there is no piece {title:?}"))
}

fn row_of(piece: Piece) -> &'static Row {
    TABLE.iter().find(|row| row.piece == piece).expect("every piece has its row")
}

fn tells(row: &Row, role: Role) -> bool {
    !matches!(role.cell(row.piece), Cell::No | Cell::Writes)
}

/// Whether the role gets this piece as turns.
fn apart(row: &Row, role: Role) -> bool {
    let talk = role == Role::Actor && matches!(row.piece, Piece::Messages | Piece::OriginalMessage);
    OWN.contains(&row.piece) || talk
}

/// The sections of a prompt by title. Other texts of the request are under [`TURNS`].
fn sections(seen: &Seen) -> Vec<(String, String)> {
    let messages = seen.body["messages"].as_array().expect("it has messages");
    assert_eq!(messages[0]["role"], "system");
    let system = messages[0]["content"].as_str().expect("a prompt is a text");
    // The prompt includes the schemas, because the provider supports them.
    let prompt = in_form(built_in_prompt(role(seen)), true);
    let (whole, bare) = (select_lines(&prompt, |_| true), select_lines(&prompt, |_| false));
    let is_built_in = |line: &str| whole.lines().chain(bare.lines()).any(|known| known == line);
    assert!(system.lines().all(is_built_in), "nothing is added to the role's prompt: {system}");
    let mut found = Vec::<(String, String)>::new();
    for message in &messages[1..] {
        let turns = || (TURNS.to_owned(), String::new());
        if message["role"] != "user" {
            found.push((TURNS.to_owned(), message.to_string()));
            continue;
        }
        let mut fence = None;
        found.push(turns());
        for line in message["content"].as_str().expect("a prompt is a text").lines() {
            let mut ended = false;
            match fence {
                None => match (line.strip_prefix("## "), line.strip_prefix("<<<")) {
                    (Some(title), _) => {
                        let title = title.strip_suffix(", continued").unwrap_or(title);
                        found.push((title.to_owned(), String::new()));
                    }
                    (None, Some(boundary)) => fence = Some(format!("{boundary}>>>")),
                    (None, None) => {}
                },
                Some(ref end) => ended = line == end,
            }
            let (_, text) = found.last_mut().expect("there is one");
            text.push_str(line);
            text.push('\n');
            if ended {
                fence = None;
                found.push(turns());
            }
        }
        assert_eq!(fence, None, "every fence ends");
    }
    found.retain(|(title, text)| title != TURNS || !text.trim().is_empty());
    found
}

#[test]
fn every_role_is_told_its_column_and_nothing_else() {
    let requests = tell().requests.concat();
    let mut told = BTreeSet::new();
    for seen in &requests {
        let (role, sections) = (role(seen), sections(seen));
        let replan = sections.iter().any(|(title, _)| title == row_of(Piece::Failure).title);
        for (title, _) in sections.iter().filter(|(title, _)| title != TURNS) {
            let row = row(title);
            assert!(tells(row, role), "the {role} is told {title:?}");
            assert!(role.cell(row.piece) != Cell::Replan || replan, "{title:?} without a plan that was given up");
            told.insert((role.name(), row.title));
        }
    }
    for role in Role::ALL {
        for row in TABLE.iter().filter(|row| tells(row, role) && !apart(row, role)) {
            assert!(told.contains(&(role.name(), row.title)), "the {role} was never told {:?}", row.title);
        }
    }
    for Mark { word, pieces, not, turns } in MARKS {
        let cells = pieces.iter().flat_map(|piece| Role::ALL.map(|role| (role, *piece)));
        let cells = cells.filter(|(role, piece)| tells(row_of(*piece), *role) && !apart(row_of(*piece), *role));
        let cells = cells.filter(|cell| !not.contains(cell));
        let mut expected: BTreeSet<_> =
            cells.map(|(role, piece)| (role.name(), row_of(piece).title.to_owned())).collect();
        expected.extend(turns.iter().map(|role| (role.name(), TURNS.to_owned())));
        let found = requests.iter().flat_map(|seen| {
            let talks = TALK.contains(&role(seen));
            let having = sections(seen).into_iter();
            let having = having.filter(move |(title, text)| !(talks && title == TURNS) && text.contains(word));
            having.map(|(title, _)| (role(seen).name(), title))
        });
        assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{word}");
    }
}

#[test]
fn secrets_stand_nowhere() {
    let Told { home, ran, requests, meanwhile } = tell();
    let asked = |run: usize, text: &str| -> Vec<Role> {
        requests[run].iter().filter(|seen| seen.body.to_string().contains(text)).map(role).collect()
    };
    for run in 0..4 {
        assert_eq!(asked(run, PASSWORD), [], "run {run}");
    }
    // Only the roles that search for secrets see it, and no later role does, although the plan that named it was refused.
    let told = [vec![], vec![Role::Router, Role::Planner], vec![], vec![]];
    assert_eq!([asked(0, PIN), asked(1, PIN), asked(2, PIN), asked(3, PIN)], told);
    // It was an ordinary word before, and is in the earlier messages.
    assert_eq!([asked(2, LATE), asked(3, LATE)], [vec![], vec![]]);
    let mut shown: Vec<String> = ran.into_iter().flat_map(|ran| [ran.stdout, ran.stderr]).collect();
    assert!(shown[2..].iter().all(|text| !text.is_empty()));
    for line in home.kiso(&["--json", "trace"]).ok().json_lines() {
        let run = line["run"].as_str().expect("a run has an id");
        for args in [&["trace", "--prompts", run][..], &["--json", "trace", "--prompts", run]] {
            shown.push(home.kiso(args).ok().stdout.clone());
        }
    }
    assert_eq!(shown.len(), 16);
    for text in &shown {
        assert!(![PASSWORD, PIN].iter().any(|secret| text.contains(secret)), "{text}");
    }
    assert!(shown.iter().any(|text| text.contains("[secret pin]")), "it was there to be taken out");
    // The values are encrypted in the vault; a long text may be split across the file's pages.
    let store = rusqlite::Connection::open(home.path().join("store.db")).expect("there is a store");
    for (table, column, text) in texts(&store) {
        assert!(![PASSWORD, PIN].iter().any(|secret| text.contains(secret)), "{table}.{column}: {text}");
    }
    drop(store);
    assert_eq!((meanwhile, holding(&home.path(), &[PASSWORD, PIN])), (vec![], vec![]));
}

/// Every value of the store that contains letters, with its table and column.
fn texts(store: &rusqlite::Connection) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut tables = store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("it is SQLite");
    let names = tables.query_map((), |row| row.get::<_, String>(0)).expect("it has tables");
    for table in names.map(|name| name.expect("a name is a text")) {
        let mut query = store.prepare(&format!("SELECT * FROM \"{table}\"")).expect("a table can be read");
        let columns: Vec<_> = query.column_names().map(str::to_owned).collect();
        let mut rows = query.query(()).expect("a table can be read");
        while let Some(row) = rows.next().expect("a row can be read") {
            for (index, column) in columns.iter().enumerate() {
                if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(index).expect("it has the column") {
                    found.push((table.clone(), column.clone(), String::from_utf8_lossy(bytes).into_owned()));
                }
            }
        }
    }
    found
}
