//! The order of requests to models: persons before subagents, which still make progress.

use crate::harness::{Home, wait_until};
use crate::model_server::{Fault, ModelServer, Reply, Script};
use crate::served::Served;
use serde_json::json;

/// A model with this many answers, each held until a release.
fn patient_model(answers: usize) -> ModelServer {
    let held = || Reply { text: "so it is".to_owned(), fault: Some(Fault::SlowFirstToken), ..Reply::default() };
    ModelServer::start(Script { reply: (0..answers).map(|_| held()).collect(), ..Script::default() })
}

fn home(server: &ModelServer, more: &str) -> Home {
    let home = Home::new();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         [models]\ntitler = \"reflex\"\nsummarizer = \"reflex\"\n{more}",
        server.base_url()
    ));
    home
}

/// Creates this many due schedules, each a subagent with one question.
fn spawn(served: &Served, count: usize) {
    for n in 0..count {
        let schedule = json!({ "name": format!("sub{n}"), "when": "@yearly", "message": "what is a tide?" });
        served.request("POST", "/schedules", Some(&schedule.to_string())).expect(201);
        served.request("POST", &format!("/schedules/sub{n}/run"), None).expect(202);
    }
}

fn gauge(served: &Served, name: &str) -> usize {
    let metrics = served.request("GET", "/metrics", None).body;
    let line = metrics.lines().find(|line| line.starts_with(&format!("kiso_{name} "))).expect("it is measured");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The order of requests: 'i' for a person, 's' for a subagent.
fn order(server: &ModelServer) -> String {
    let kind = |prompt: String| if prompt.contains("You work as a subagent") { 's' } else { 'i' };
    server.requests().into_iter().map(|seen| kind(seen.prompt())).collect()
}

mod rate_limiting {
    use super::*;

    const SUBAGENTS: usize = 52;
    const PERSONS: usize = 7;

    /// With both slots busy and 50 subagents waiting, a person gets the next slot, and after four persons a subagent
    /// does (docs/subagents.md).
    #[test]
    fn interactive_requests_get_priority_over_subagents() {
        let server = patient_model(SUBAGENTS + PERSONS);
        let home = home(&server, "[daemon]\ndebounce_ms = 0\nmax_jobs = 100\n[llm]\nmax_concurrent_llm = 2\n");
        let served = Served::start(&home);
        spawn(&served, SUBAGENTS);
        wait_until("50 subagents to wait", || {
            gauge(&served, "model_calls_waiting") == SUBAGENTS - 2 && server.held() == 2
        });
        assert_eq!(order(&server), "ss");
        for n in 0..PERSONS {
            served.send(&format!("person{n}"), "what is a wave?");
            wait_until("a person to wait", || gauge(&served, "model_calls_waiting") == SUBAGENTS - 2 + n + 1);
        }
        for asked in 3..=2 + PERSONS + 2 {
            server.release();
            wait_until("the next call", || server.requests().len() == asked && server.held() == 2);
        }
        assert_eq!(order(&server), "ssiiiisiiis");
        (0..SUBAGENTS + PERSONS).for_each(|_| server.release());
        wait_until("everybody to be answered", || gauge(&served, "running_runs") == 0);
        assert_eq!(served.terminate(), 0);
        server.finish();
    }

    /// By default, two calls run at the same time.
    #[test]
    fn two_calls_at_once_by_default() {
        let server = patient_model(5);
        let home = home(&server, "[daemon]\ndebounce_ms = 0\n");
        let served = Served::start(&home);
        for n in 0..5 {
            served.send(&format!("person{n}"), "what is a wave?");
        }
        wait_until("two calls, and three that wait", || {
            assert!(server.held() <= 2, "{} calls are under way", server.held());
            server.held() == 2 && gauge(&served, "model_calls_waiting") == 3
        });
        assert_eq!((server.requests().len(), gauge(&served, "model_slots_free")), (2, 0));
        (0..5).for_each(|_| server.release());
        wait_until("everybody to be answered", || server.requests().len() == 5 && gauge(&served, "running_runs") == 0);
        assert_eq!(gauge(&served, "model_slots_free"), 2);
        server.finish();
    }

    #[test]
    fn max_concurrent_llm_limit_respected() {
        let server = patient_model(8);
        let home = home(&server, "[daemon]\ndebounce_ms = 0\nmax_jobs = 100\n[llm]\nmax_concurrent_llm = 3\n");
        let served = Served::start(&home);
        spawn(&served, 4);
        for n in 0..4 {
            served.send(&format!("person{n}"), "what is a wave?");
        }
        for answered in 0..5 {
            wait_until("the slots to be taken", || {
                let asked = server.requests().len();
                assert!(asked <= 3 + answered, "{asked} calls, of which {answered} were answered");
                asked == 3 + answered && server.held() == 3 && gauge(&served, "model_calls_waiting") == 5 - answered
            });
            assert_eq!(gauge(&served, "model_slots_free"), 0);
            server.release();
        }
        (0..3).for_each(|_| server.release());
        wait_until("everybody to be answered", || gauge(&served, "running_runs") == 0);
        assert_eq!(gauge(&served, "model_slots_free"), 3);
        server.finish();
    }
}

/// The limit applies to the home: commands that process messages themselves share it.
#[test]
fn processes_of_a_home_share_the_limit() {
    const PROCESSES: usize = 3;
    let server = patient_model(PROCESSES);
    let home = home(&server, "[llm]\nmax_concurrent_llm = 1\n");
    let begin = |n: usize| home.command(&["run", "-s", &format!("person{n}"), "what is a wave?"]).spawn().unwrap();
    let mut processes: Vec<_> = (0..PROCESSES).map(begin).collect();
    wait_until("each of them to have a run", || {
        home.kiso(&["--json", "trace"]).ok().json_lines().len() == PROCESSES && server.held() == 1
    });
    for answered in 0..PROCESSES {
        wait_until("one to be asked", || {
            let asked = server.requests().len();
            assert!(asked <= 1 + answered, "{asked} calls, of which {answered} were answered");
            asked == 1 + answered && server.held() == 1
        });
        server.release();
    }
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    server.finish();
}

/// Long-running subagents do not block a person: a quarter of all slots is reserved.
#[test]
fn a_person_finds_a_free_turn_beside_many_subagents() {
    let server = patient_model(11);
    let home = home(&server, "[daemon]\ndebounce_ms = 0\nmax_jobs = 4\n[llm]\nmax_concurrent_llm = 64\n");
    let served = Served::start(&home);
    spawn(&served, 10);
    wait_until("three to be at work", || server.held() == 3);
    served.send("person", "what is a wave?");
    wait_until("the person to be answered beside them", || server.held() == 4);
    assert_eq!(order(&server), "sssi");
    (0..11).for_each(|_| server.release());
    wait_until("everybody to be answered", || server.requests().len() == 11 && gauge(&served, "running_runs") == 0);
    server.finish();
}
