mod forms;

use super::*;

const PROVIDERS: &str = r#"
[providers.openai]
kind = "openai"
base_url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"
[providers.claude]
kind = "anthropic"
base_url = "https://api.anthropic.com/v1"
key_env = "ANTHROPIC_API_KEY"
[providers.local]
kind = "openai"
base_url = "http://localhost:8080/v1"
"#;

fn open(text: &str) -> Result<Models, ModelError> {
    let config = Config::parse(format!("{text}\n{PROVIDERS}").as_bytes()).unwrap();
    let env = |variable: &str| match variable {
        "OPENAI_API_KEY" => Some("sk-geheim\n".to_owned()),
        "ANTHROPIC_API_KEY" => Some(" ".to_owned()),
        _ => None,
    };
    Models::open(&config, env)
}

#[test]
fn each_model_is_opened_once_with_the_roles_that_use_it() {
    let models = open(
        "model = \"gpt\"\n[models]\nworker = \"local:small\"\nrouter = \"reflex\"\n\
         [fallbacks]\nall = [\"local:small\", \"openai:gpt\"]\nrouter = [\"reflex\"]\n",
    )
    .unwrap();
    let shown: Vec<_> =
        models.each().iter().map(|o| (o.name.as_str(), o.built_in, o.roles.len(), o.fallback_of.len())).collect();
    assert_eq!(shown, [("openai:gpt", false, 7, 1), ("local:small", false, 1, 7), ("reflex", true, 1, 0)]);
    assert_eq!(models.for_role(Role::Planner).name(), "openai:gpt");
    assert_eq!((models.for_role(Role::Worker).name(), models.for_role(Role::Router).name()), ("local:small", "reflex"));
    assert_eq!(models.slots().free(), 2);
}

#[test]
fn only_keys_that_are_used_are_asked_for_and_they_are_not_shown() {
    let models = open("model = \"openai:gpt\"").unwrap();
    let keys = models.keys();
    assert_eq!(
        keys.iter().map(|(name, key)| (name.as_str(), key.expose())).collect::<Vec<_>>(),
        [("OPENAI_API_KEY", "sk-geheim")]
    );
    let shown = format!("{models:?} {:?} {keys:?}", models.each());
    assert!(!shown.contains("geheim"), "{shown}");
    assert!(open("model = \"reflex\"").unwrap().keys().is_empty());
    let error = open("model = \"claude:x\"").unwrap_err().to_string();
    assert!(
        error.contains("ANTHROPIC_API_KEY, the variable with the key of [providers.claude], is not set"),
        "{error}"
    );
    let error = open("[fallbacks]\nactor = [\"claude:x\"]\n").unwrap_err();
    assert_eq!((error.role, error.name.as_str()), ("actor", "claude:x"));
    let config = Config::parse(format!("model = \"openai:gpt\"\n{PROVIDERS}").as_bytes()).unwrap();
    let error = Models::open(&config, |_| Some("sk geheim".to_owned())).unwrap_err().to_string();
    assert!(error.contains("holds no key") && !error.contains("geheim"), "{error}");
}

#[test]
fn budgets_come_from_the_model_or_else_from_the_default() {
    let models = open(
        "model = \"gpt\"\n[models]\nworker = \"local:small\"\nactor = \"local:odd\"\n\
         [model_settings.gpt]\ncontext_budget = 100_000\nmax_output_tokens = 9_000\n\
         [model_settings.\"local:odd\"]\ncontext_budget = 1_000\n[context]\nbudget_tokens = 8_000\n",
    )
    .unwrap();
    let settings = |role| (models.settings(role).context_budget, models.settings(role).max_output_tokens);
    assert_eq!(settings(Role::Planner), (100_000, 9_000));
    assert_eq!(settings(Role::Worker), (8_000, 2_000));
    assert_eq!(settings(Role::Actor), (1_000, 250));
    // A configured value applies even if a role asks for less; the default only limits a role that asks for more.
    assert_eq!(models.settings(Role::Titler).answer(Role::Titler, 64), 9_000);
    let worker = |wanted| models.settings(Role::Worker).answer(Role::Worker, wanted);
    assert_eq!((worker(64), worker(4_096)), (64, 2_000));
    let models = open(
        "model = \"gpt\"\n[fallbacks]\nworker = [\"local:small\"]\n[model_settings.gpt]\ncontext_budget = 100_000\n\
         [model_settings.\"local:small\"]\ncontext_budget = 4_000\n",
    )
    .unwrap();
    let budget = |role| models.settings(role).context_budget;
    assert_eq!((budget(Role::Worker), budget(Role::Planner)), (4_000, 100_000), "a fallback is told what fits it");
}

#[test]
fn answers_and_their_forms_grow_with_the_context() {
    for (settings, worker, planner, titler, short) in [
        ("context_budget = 8_000", 2_000, 2_000, 64, true),
        ("context_budget = 16_384", 2_048, 4_096, 64, true),
        ("context_budget = 32_000", 3_000, 6_000, 64, false),
        ("context_budget = 64_000", 4_000, 8_000, 64, false),
        ("context_budget = 128_000", 8_000, 16_000, 64, false),
        ("context_budget = 128_000\nmax_output_tokens = 4_096", 4_096, 4_096, 4_096, false),
        ("context_budget = 128_000\nmax_output_tokens = 1_000", 1_000, 1_000, 1_000, true),
    ] {
        let models = open(&format!("model = \"gpt\"\n[model_settings.gpt]\n{settings}\n")).unwrap();
        let answer = |role: Role| models.settings(role).answer(role, role.declaration().max_tokens);
        let answers = (answer(Role::Worker), answer(Role::Planner), answer(Role::Titler));
        assert_eq!(answers, (worker, planner, titler), "{settings}");
        for role in [Role::Worker, Role::Planner] {
            assert_eq!(models.settings(role).is_short(answer(role)), short, "{settings}");
        }
    }
}

#[test]
fn a_prompt_that_cannot_fit_is_told_with_the_setting() {
    let models = open(
        "model = \"gpt\"\n[models]\nactor = \"reflex\"\n[fallbacks]\nworker = [\"local:small\"]\n\
         [model_settings.\"local:small\"]\ncontext_budget = 2_000\n[context]\nbudget_tokens = 6_000\n",
    )
    .unwrap();
    let too_small = |role, tokens: usize| models.too_small_for(role, tokens).map(|limit| (limit.value, limit.setting));
    assert_eq!(too_small(Role::Planner, 5_900), None);
    assert_eq!(too_small(Role::Planner, 5_990), Some((6_000, "context.budget_tokens".to_owned())));
    let of_fallback = (2_000, "model_settings.\"local:small\".context_budget".to_owned());
    assert_eq!(too_small(Role::Worker, 1_990), Some(of_fallback));
    assert_eq!(too_small(Role::Actor, 100_000), None, "the built-in rules read everything");
    assert_eq!(models.message_tokens(), 2_000);
    assert_eq!(open("model = \"reflex\"").unwrap().message_tokens(), usize::MAX);
}
