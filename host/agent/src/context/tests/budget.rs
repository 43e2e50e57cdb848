//! Sizes of the pieces, and which of them are shortened.

use super::*;
use kiso_llm::{Request, ToolSpec, Turn};
use kiso_plan::call::ToolCall;
use kiso_plan::estimate::tokens;
use kiso_plan::prompt::{Piece, TABLE, shrinking};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_budget_is_kept(
        sizes in proptest::collection::vec((0..6usize, 0..900usize), Piece::ALL.len()), budget in 0..30_000usize
    ) {
        let pieces = sized(&sizes);
        for role in Role::ALL {
            let pieces = select(role, &pieces);
            let least = render(&pieces, BOUNDARY, 0);
            let whole = render(&pieces, BOUNDARY, usize::MAX);
            let prompt = render(&pieces, BOUNDARY, budget);
            prop_assert!(tokens(&prompt) <= budget.max(tokens(&least)), "{} of {budget}", tokens(&prompt));
            if tokens(&whole) + 50 <= budget {
                prop_assert_eq!(&prompt, &whole);
            }
            // Pieces that are never cut look the same as with unlimited space.
            for piece in Piece::ALL.iter().filter(|piece| !shrinking().any(|of| of == **piece) && ![Piece::Caller, Piece::Now].contains(piece)) {
                if let Some(section) = section(&whole, *piece) {
                    prop_assert!(prompt.contains(section) && least.contains(section), "{piece:?}");
                }
            }
        }
    }

    #[test]
    fn the_last_messages_go_last(count in 3..30usize, size in 20..300usize, budget in 900..4_000usize) {
        let message = |n: usize| ChatMessage::new("user", format!("No{n} {}", "abc ".repeat(size)));
        let pieces = Pieces { messages: Some((0..count).map(message).collect()), ..Pieces::default() };
        let prompt = render(&pieces, BOUNDARY, budget);
        let there: Vec<bool> = (0..count).map(|n| prompt.contains(&format!("No{n} "))).collect();
        prop_assert!(there[count - 2..].iter().all(|there| *there), "{}", prompt);
        // No gaps: if a message is shown, all newer ones are, too.
        prop_assert!(there.windows(2).all(|pair| !pair[0] || pair[1]));
        if there[0] {
            prop_assert!(!prompt.contains("left out"));
        } else {
            let gone = there.iter().filter(|there| !**there).count();
            let note = format!("({gone} more left out)");
            prop_assert!(prompt.contains(&note));
        }
    }
}

/// Pieces of these sizes: entries of a list, and words in each of its texts.
fn sized(sizes: &[(usize, usize)]) -> Pieces {
    let mut fields = serde_json::to_value(planted()).unwrap();
    for (value, (count, words)) in fields.as_object_mut().unwrap().values_mut().zip(sizes) {
        plant(value, &" word".repeat(*words));
        if let Some(item) = value.as_array_mut().map(|items| items[0].clone()) {
            *value = vec![item; *count].into();
        }
    }
    serde_json::from_value(fields).unwrap()
}

/// Returns the text of a piece with its heading and fence.
fn section(prompt: &str, piece: Piece) -> Option<&str> {
    let row = TABLE.iter().find(|row| row.piece == piece)?;
    let start = prompt.find(&format!("\n## {}\n", row.title))?;
    let end = prompt[start..].find(&format!("\n{BOUNDARY}>>>\n")).map_or(prompt.len(), |at| start + at);
    Some(&prompt[start..end])
}

/// Rule: "remaining = contextBudget * 0.9 - fixedTokens; slidingWindowN = min(context.slidingWindow,
/// messagesfitting(remaining))": the window has no cap and gets all remaining space.
#[test]
fn the_window_takes_what_the_others_leave() {
    let message = |n: usize| ChatMessage::new("user", format!("No{n} {}", "abc ".repeat(1_000)));
    let alone = Pieces { messages: Some((0..18).map(message).collect()), ..Pieces::default() };
    let shown = |pieces: &Pieces, budget| {
        let prompt = render(pieces, BOUNDARY, budget);
        assert!(tokens(&prompt) <= budget, "{} tokens of {budget}", tokens(&prompt));
        (0..18).filter(|n| prompt.contains(&format!("No{n} "))).count()
    };
    assert_eq!(shown(&alone, 115_200), 18, "nine tenths of 128,000 have room for all");
    assert_eq!(shown(&alone, 10_000), 9);
    // The fixed layers stay, and the window is shortened.
    let fixed = Pieces { summary: Some("s".repeat(6_000)), core: Some("c".repeat(6_000)), ..alone };
    let prompt = render(&fixed, BOUNDARY, 10_000);
    assert!(prompt.contains(&"s".repeat(6_000)) && prompt.contains(&"c".repeat(6_000)));
    assert_eq!(shown(&fixed, 10_000), 6);
}

#[test]
fn what_is_never_cut_is_what_the_work_is_about() {
    let kept: Vec<_> = Piece::ALL.iter().filter(|piece| !shrinking().any(|of| of == **piece)).collect();
    let expected =
        [Piece::Caller, Piece::Now, Piece::NewMessage, Piece::Goal, Piece::Task, Piece::Brief, Piece::Correction];
    assert_eq!(kept, expected.iter().collect::<Vec<_>>());
}

/// With little space, the planner still sees the message, and something of everything else.
#[test]
fn a_small_context_keeps_something_of_everything() {
    let prompt = render(&select(Role::Planner, &sized(&[(5, 300); Piece::ALL.len()])), BOUNDARY, 6_000);
    assert!(tokens(&prompt) <= 6_000 && tokens(&prompt) > 5_000, "{}", tokens(&prompt));
    assert!(!prompt.contains("no room"), "{prompt}");
    // With hardly any space, the last messages outlive the background, because the new one may refer to them.
    let pieces = select(Role::Planner, &sized(&[(5, 300); Piece::ALL.len()]));
    let least = tokens(&render(&pieces, BOUNDARY, 0));
    let prompt = render(&pieces, BOUNDARY, least + 130);
    assert!(has(&prompt, "M-messages") && !has(&prompt, "M-facts") && !has(&prompt, "M-skills"), "{prompt}");
    let prompt = render(&select(Role::Reviewer, &sized(&[(5, 3_000); Piece::ALL.len()])), BOUNDARY, 0);
    assert!(prompt.contains("## Its output\n<<<3f9c2b7d51e8a604\n(left out: no room)\n"), "{prompt}");
}

#[test]
fn a_huge_text_takes_its_cap_and_no_more() {
    let huge = |unit: &str| format!("HEAD {} TAIL", unit.repeat(400_000 / unit.len()));
    for unit in ["words ", "ж", "a\n", "漢字かな"] {
        let mut pieces = planted();
        pieces.new_message = Some(huge(unit));
        pieces.facts = Some(vec![huge(unit), "small fact".to_owned(), huge(unit)]);
        let prompt = render(&select(Role::Planner, &pieces), "b0undary", usize::MAX);
        assert!(tokens(&prompt) < 9_500, "{} tokens", tokens(&prompt));
        assert!(prompt.contains("HEAD") && prompt.contains("TAIL") && prompt.contains("characters left out"));
        assert!(prompt.contains("small fact") && prompt.contains("M-skills"));
    }
}

#[test]
fn fitting_keeps_within_the_cap() {
    assert_eq!(fit_text("short", 10), "short");
    for text in ["x".repeat(10_000), "ж".repeat(10_000), format!("{}{}", "x".repeat(9_000), "ж".repeat(1_000))] {
        for cap in [30, 100, 999] {
            let fitted = fit_text(&text, cap);
            assert!(tokens(&fitted) <= cap, "{} tokens over {cap}", tokens(&fitted));
            assert!(tokens(&fitted) >= cap / 2, "{} tokens of {cap}", tokens(&fitted));
        }
    }
}

#[test]
fn room_is_what_the_rest_of_a_call_leaves() {
    let mut request = Request::new(Role::Actor, "x".repeat(400), String::new());
    request.max_tokens = 1_000;
    assert_eq!(room(10_000, &request), 9_000 - 100 - 1_000);
    let call = ToolCall::new("1", "data", "x".repeat(40));
    request.turns = vec![
        Turn::Assistant { text: "x".repeat(80), calls: vec![call] },
        Turn::Tool { id: "1".to_owned(), name: "data".to_owned(), text: "x".repeat(120) },
        Turn::Note("x".repeat(16)),
    ];
    request.tools.push(ToolSpec { name: "data".to_owned(), description: "x".repeat(40), parameters: json!({}) });
    assert_eq!(room(10_000, &request), 9_000 - 100 - 1_000 - (20 + 1 + 10) - (1 + 30) - 4 - (1 + 10 + 1));
    // A small model must not use its whole context for the answer.
    request.max_tokens = 8_000;
    assert_eq!(answer(4_000, &request), 1_000);
    assert_eq!(room(100, &request), 0);
}
