//! Compares the tasks in the log with those of the run itself.

use super::dice::{Dice, answer, spec};
use super::*;
use kiso_plan::verdict::Status;

/// After each event of many runs, the log alone contains every task of the run, with the same id.
#[test]
fn the_log_knows_the_tasks_of_the_run() {
    let (mut verdicts, mut fixes, mut direct, mut files, mut again) = (0, 0, 0, 0, 0);
    for seed in 0..3_000 {
        let dice = &mut Dice::Seed(seed);
        let mut live = Live { run: Run::new(spec(dice)), log: Vec::new() };
        let limits = live.run.spec().limits;
        let mut history = History::default();
        loop {
            let step = live.run.next_step();
            if step == Step::Ended {
                break;
            }
            let event = live.feed(answer(dice, &step, &limits));
            if History::KINDS.contains(&event.result.name()) {
                history.add(1, 1, &event);
            }
            let board = live.run.board();
            let ids = |state| board.iter().filter(|task| task.state == state).map(|task| task.id).collect::<Vec<_>>();
            let planned = ids(TaskState::Planned);
            assert!(planned.is_empty() || planned == history.waiting(), "seed {seed}: {event:?}");
            if let [running] = ids(TaskState::Running)[..] {
                assert_eq!(history.current(), Some(running), "seed {seed}: {event:?}");
            }
            for task in &board {
                let known = history.task(task.id).unwrap_or_else(|| panic!("seed {seed}: {task:?}"));
                if let Some(report) = task.report {
                    assert_eq!((&known.files, known.exit_code), (&report.files, report.exit_code), "seed {seed}");
                    assert_eq!(known.stderr, report.stderr);
                }
            }
        }
        let ids = (1..).map_while(|id| history.task(id));
        for task in ids {
            verdicts += u32::from(task.verdict.is_some());
            fixes += u32::from(task.attempt > 1);
            direct += u32::from(task.plan == 0);
            files += u32::from(!task.files.is_empty());
            again += u32::from(task.plan > 1);
            assert!(task.plan <= history.plans);
        }
    }
    assert!([verdicts, fixes, direct, files, again].iter().all(|times| *times > 10), "all of it came about");
}

#[test]
fn plans_attempts_and_verdicts() {
    let mut live = Live::planned(vec![skill(true), msg()]);
    live.done();
    live.feed(fix(&[skill(true)]));
    live.done();
    live.feed(replan("no such file"));
    live.take_notice();
    live.feed(plan(vec![skill(true), msg()]));
    live.done();
    live.feed(ok());
    let mut history = History::default();
    live.log.iter().for_each(|event| history.add(1, 1, event));
    let told = (1..).map_while(|id| history.task(id)).map(|task| {
        let status = task.verdict.as_ref().map(|(status, _)| *status);
        (task.plan, task.attempt, status)
    });
    let expected = [
        (1, 1, Some(Status::NeedsFix)),
        (1, 1, None),
        (1, 2, Some(Status::Replan)),
        (2, 1, Some(Status::Ok)),
        (2, 1, None),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert_eq!((history.plans, history.goal.as_str()), (2, "draw"));
    let mut ids: Vec<_> = (1..=5).collect();
    ids.sort_by_key(|id| history.place(*id));
    assert_eq!(ids, [1, 3, 2, 4, 5], "the fix ran before what was dropped, and the new plan comes behind all of it");
    let reason = history.task(3).unwrap().verdict.as_ref().unwrap().1.as_deref();
    assert_eq!(reason, Some("no such file"));
}
