//! Decisions about finished tasks.

use super::*;
use kiso_plan::code::ErrorCode;

#[test]
fn needs_fix_injects_before_what_waits() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    let event = live.feed(fix(&[skill(false), skill(true)]));
    assert_eq!(way(&event), [(Node::Critic, Why::NeedsFix, Node::Reasoning)]);
    let Step::Start { brief, .. } = live.run.next_step() else { panic!() };
    assert_eq!((brief.number, brief.of, brief.task.review), (2, 4, false));
    live.done();
    live.done();
    live.feed(ok());
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn after_too_many_fixes_the_reviewer_is_left_out() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    for _ in 0..3 {
        live.done();
        live.feed(fix(&[skill(true)]));
    }
    let event = live.done();
    assert_eq!(limit_names(&event), ["max_review_depth"]);
    let notice = live.take_notice();
    assert!(
        notice.contains("Task 4 (skill chart) was not reviewed") && notice.contains("max_review_depth"),
        "{notice}"
    );
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn a_fix_that_does_not_fit_is_a_replan() {
    let limits = Limits { max_tasks: 2, ..Limits::default() };
    let mut live = Live::planned_with(limits, vec![skill(true), msg()]);
    live.done();
    let event = live.feed(fix(&[skill(false)]));
    assert_eq!((limit_names(&event), way(&event)[0].1), (vec!["max_tasks"], Why::Replan));
    assert!(live.take_notice().contains("max_tasks allows (2)"));
}

#[test]
fn an_unreviewed_failure_is_a_replan_with_the_error() {
    let mut live = Live::planned(vec![skill(false), msg()]);
    let event = live.failed();
    assert_eq!(way(&event)[1], (Node::Critic, Why::Replan, Node::Planner));
    assert!(live.take_notice().contains("boom"));
    // A plan that only apologises does not make the run succeed.
    live.feed(plan(vec![msg()]));
    live.execute(|report| report.text = "Sorry.".to_owned());
    let outcome = live.finish();
    assert_eq!(outcome.ending, Ending::Failed { reason: "boom".to_owned() });
    assert_eq!(outcome.reply, "Sorry.\n\nboom");
}

#[test]
fn an_exit_code_is_a_failure_whatever_the_status_says() {
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.execute(|report| report.exit_code = Some(2));
    assert!(live.take_notice().contains("it ended with exit code 2"));
}

#[test]
fn what_the_reviewer_rejected_stays_rejected() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    live.feed(replan("empty chart"));
    live.take_notice();
    live.feed(plan(vec![msg()]));
    live.done();
    assert_eq!(live.finish().ending, Ending::Failed { reason: "empty chart".to_owned() });
}

#[test]
fn a_reviewer_may_approve_an_exit_code_but_not_a_limit() {
    for (limit, failed) in [(None, false), (Some("timeout_s".to_owned()), true)] {
        let mut live = Live::planned(vec![skill(true), msg()]);
        live.execute(|report| {
            report.status = TaskStatus::Failed;
            report.exit_code = Some(1);
            report.error = Some(TaskError { limit, ..error("ended with 1") });
        });
        live.feed(ok());
        live.done();
        assert_eq!(matches!(live.finish().ending, Ending::Failed { .. }), failed);
    }
}

#[test]
fn a_goal_unmet_at_the_end_is_a_replan() {
    let unmet = json!({"status": "ok", "goal_met": false, "reason": "only half"});
    let mut live = Live::planned(vec![skill(true), skill(true), msg()]);
    live.done();
    let event = live.feed(verdict(unmet.clone()));
    assert_eq!(way(&event)[0].1, Why::TasksRemain, "other work is waiting");
    live.done();
    let event = live.feed(verdict(unmet));
    assert_eq!(way(&event)[0].1, Why::Replan);
    assert!(live.take_notice().contains("only half"));
}

#[test]
fn a_review_that_cannot_be_read_leaves_the_status_to_decide() {
    for fails in [false, true] {
        let mut live = Live::planned(vec![skill(true), msg()]);
        if fails {
            live.failed()
        } else {
            live.done()
        };
        for _ in 0..3 {
            let event = live.feed(unreviewed());
            assert_eq!(way(&event), [(Node::Critic, Why::NoVerdict, Node::Critic)]);
        }
        let event = live.feed(unreviewed());
        assert_eq!(limit_names(&event), ["max_parse_retries"]);
        assert_eq!(way(&event)[0].1, if fails { Why::Replan } else { Why::TasksRemain });
        assert!(live.take_notice().contains("could not be read after 4 attempts"));
    }
}

#[test]
fn a_reviewer_without_a_model_leaves_the_status_to_decide() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    live.feed(model_failed("timed out"));
    assert!(live.take_notice().contains("could not be reviewed (timed out)"));
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn a_message_is_said_only_once_the_critic_accepts_it() {
    let reviewed = Task { review: true, expect: Some("polite".to_owned()), ..msg() };
    let mut live = Live::planned(vec![reviewed]);
    let event = live.execute(|report| report.text = "Rude.".to_owned());
    assert_eq!(event.say, None);
    live.feed(fix(&[msg()]));
    let event = live.execute(|report| report.text = "Polite.".to_owned());
    assert_eq!(event.say.as_deref(), Some("Polite."));
    assert_eq!(live.finish().reply, "Polite.");
}

#[test]
fn files_are_listed_once_as_they_were_last() {
    let mut live = Live::planned(vec![skill(false), skill(false), msg()]);
    live.execute(|report| report.files = vec![file("pub/a.svg", 1), file("pub/b.svg", 2)]);
    live.execute(|report| report.files = vec![file("pub/a.svg", 3)]);
    live.done();
    assert_eq!(live.finish().files, [file("pub/a.svg", 3), file("pub/b.svg", 2)]);
}

/// No command is repeated because a model does not answer: only the message is written again.
#[test]
fn a_message_whose_model_does_not_answer_is_written_again_and_never_planned_again() {
    let fails = |live: &mut Live, retryable: bool| {
        live.start();
        let Step::Execute { task, brief } = live.run.next_step() else { panic!() };
        let error = TaskError { code: ErrorCode::ModelFailed, retryable, ..TaskError::of_host("gone".to_owned()) };
        let report = Box::new(TaskReport::failed(brief.task, error));
        live.feed(StepResult::Executed { task, report, call: None })
    };
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.execute(|report| report.text = "it is 7".to_owned());
    assert_eq!(whys(&fails(&mut live, true)), [Why::TaskEnded, Why::TasksRemain]);
    assert_eq!(whys(&fails(&mut live, true)), [Why::TaskEnded, Why::TasksRemain]);
    assert_eq!(whys(&fails(&mut live, true)), [Why::TaskEnded, Why::PlanExhausted]);
    let outcome = live.finish();
    let Ending::Failed { reason } = &outcome.ending else { panic!("{outcome:?}") };
    assert!(reason.starts_with("The reply could not be written: gone") && reason.contains("it is 7"), "{reason}");
    // One of the calls may be answered; an error that would repeat itself is not retried.
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.done();
    fails(&mut live, true);
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
    let mut live = Live::planned(vec![skill(false), msg()]);
    live.done();
    assert_eq!(whys(&fails(&mut live, false)), [Why::TaskEnded, Why::PlanExhausted]);
}
