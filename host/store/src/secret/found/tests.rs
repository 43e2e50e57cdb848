use super::*;

fn extract(text: &str) -> (String, Vec<(String, SecretValue)>) {
    super::extract(text, &Secrets::default())
}

/// Returns the found credentials as "name=value".
fn pairs(text: &str) -> Vec<String> {
    find(text).into_iter().map(|found| format!("{}={}", found.name, &text[found.range])).collect()
}

#[test]
fn credentials_are_found_and_named() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    for (text, wanted) in [
        ("use ghp_abc123 to push", "github_token=ghp_abc123"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a.", "github_token=ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("github_pat_11AAAAAAA0abcdEFGH_ijklMNOP12", "github_token=github_pat_11AAAAAAA0abcdEFGH_ijklMNOP12"),
        ("key sk-ant-api03-AbCdEf123456-xyz_0123456789", "anthropic_api_key=sk-ant-api03-AbCdEf123456-xyz_0123456789"),
        ("(sk-proj-AbCd1234EfGh5678IjKl)", "openai_api_key=sk-proj-AbCd1234EfGh5678IjKl"),
        ("AKIAIOSFODNN7EXAMPLE", "aws_access_key_id=AKIAIOSFODNN7EXAMPLE"),
        ("slack xoxb-123456789012-abcdefGHIJ", "slack_token=xoxb-123456789012-abcdefGHIJ"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "google_api_key=AIzaSyA1234567890abcdefghijklmnopqrstuv"),
        ("glpat-abcd1234EFGH5678ijkl", "gitlab_token=glpat-abcd1234EFGH5678ijkl"),
        (&format!("Authorization: Bearer {jwt}"), &format!("jwt={jwt}")),
        ("Authorization: Bearer 0123456789abcdef0123", "token=0123456789abcdef0123"),
        ("postgres://app:s3cr3t!@db.example.com/x", "password=s3cr3t!"),
        ("my password is hunter22", "password=hunter22"),
        ("My password is: hunter22.", "password=hunter22"),
        ("password: swordfish", "password=swordfish"),
        ("password=hunter2&user=x", "password=hunter2"),
        ("{\"password\": \"a b c d\"}", "password=a b c d"),
        ("log in with password hunter22 please", "password=hunter22"),
        ("the password is 'correct horse'", "password=correct horse"),
        ("password: correct-horse-battery", "password=correct-horse-battery"),
        ("password: 1234", "password=1234"),
        ("API key: 1a2b3c4d5e6f", "api_key=1a2b3c4d5e6f"),
        ("the api-key is 1a2b3c4d5e6f,", "api_key=1a2b3c4d5e6f"),
        ("token=abcdef123456", "token=abcdef123456"),
        ("export GITHUB_TOKEN=abcdef123456", "github_token=abcdef123456"),
        ("DB_PASSWORD=hunter22", "db_password=hunter22"),
        (
            "aws secret access key: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "secret=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ),
        ("client_secret=abcd1234efgh", "secret=abcd1234efgh"),
        ("la clave es abcd1234", "secret=abcd1234"),
        ("Mein Passwort ist hunter22", "password=hunter22"),
        ("Das Kennwort lautet „geheim 7“", "password=geheim 7"),
        ("API-Schlüssel: 1a2b3c4d5e6f", "api_key=1a2b3c4d5e6f"),
        ("mi contraseña es hunter22", "password=hunter22"),
        ("clave de API: 1a2b3c4d5e6f", "api_key=1a2b3c4d5e6f"),
        ("le mot de passe est hunter22", "password=hunter22"),
        ("clé d'API : 1a2b3c4d5e6f", "api_key=1a2b3c4d5e6f"),
        ("пароль — hunter22", "password=hunter22"),
        ("Мой пароль: тайна77", "password=тайна77"),
        ("токен: abcdef123456", "token=abcdef123456"),
        ("パスワードはhunter22です", "password=hunter22"),
        ("APIキー：1a2b3c4d5e6f", "api_key=1a2b3c4d5e6f"),
    ] {
        assert_eq!(pairs(text), [wanted], "{text}");
    }
}

#[test]
fn ordinary_texts_stay_as_they_are() {
    for text in [
        "",
        "open the password reset page",
        "The password is wrong",
        "the password is at least 8 characters long",
        "The password is base64-encoded",
        "a password is case-sensitive",
        "passwords: see the wiki",
        "Password: required field",
        "password: string",
        "Password: minimum 8 characters",
        "make an 8-character password 12-character",
        "change the password: go to settings",
        "password=$PASSWORD and token=${TOKEN}",
        "password: <your password>",
        "password: ********",
        "password = request.form['password']",
        "token = get_token()",
        "token: 4096",
        "max_tokens: 500000",
        "the token is expired",
        "token limit 128000",
        "tokenizer: bert-base-uncased-v2",
        "API key: see docs/api.md",
        "the api key is in the vault",
        "api_key=None",
        "api key: https://example.com/keys/2024",
        "sk-learn-based-classifier-version-2",
        "task-1234567890abcdefgh",
        "ghp_ is the prefix of tokens at GitHub",
        "https://example.com:8080/path@2x.png",
        "git@github.com:kiso-agent/kiso.git",
        "postgres://user:password@localhost/db",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "eyJhbGciOiJIUzI1NiJ9 is the head of a JWT",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "Passwort: siehe Anhang",
        "Das Passwort ist falsch",
        "la contraseña es obligatoria",
        "le mot de passe est incorrect",
        "пароль неверный",
        "パスワードを忘れました",
        "a bearer token is required",
        "AKIATOOSHORT",
        "redis://user:password@host:6379/db2",
        "postgresql://postgres:postgres@localhost/db",
        "passwd::pw_gecos2 is supported",
        "let token: cpuid_aes_sha::InitToken = init();",
        "- password: percent-decoded",
        "La clave: paciencia",
        "the secret is patience",
        "the secret of release v1.2.3-beta2",
        "password: [secret password]",
    ] {
        assert_eq!(pairs(text), [""; 0], "{text}");
    }
}

#[test]
fn a_private_key_goes_whole_even_when_it_is_cut_off() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----";
    let text = format!("here:\n{key}\nthanks");
    let (clean, values) = extract(&text);
    assert_eq!(clean, "here:\n[secret private_key]\nthanks");
    assert_eq!(values[0].1.expose(), key);
    let (clean, _) = extract(&text[..60]);
    assert_eq!(clean, "here:\n[secret private_key]");
}

#[test]
fn several_are_told_apart_and_the_same_is_one() {
    let text = "password: hunter22, other password: hunter33. Again hunter22, and password=hunter22; token ghp_abc123";
    let (clean, values) = extract(text);
    assert_eq!(
        clean,
        "password: [secret password], other password: [secret password_2]. Again [secret password], and \
         password=[secret password]; token [secret github_token]"
    );
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["password", "password_2", "github_token"]);
    assert!(!format!("{values:?}").contains("hunter"));
}

#[test]
fn a_form_inside_a_longer_value_does_not_leave_the_rest() {
    assert_eq!(extract("password: ghp_abc123!rest9").0, "password: [secret github_token]");
    assert_eq!(extract("password: x!ghp_abc123").0, "password: [secret password]");
}

#[test]
fn texts_that_repeat_the_beginning_of_a_secret_are_read_once() {
    for part in ["sk-", "eyJ.", "password:", "password «", "://a:", "-----BEGIN ", "glpat-.", "token='"] {
        // Quadratic work on this would take minutes. Only the last few labels, which have little text after them, may have
        // values.
        let text = part.repeat(300_000 / part.len());
        assert!(extract(&text).1.len() <= 1, "{part}");
    }
}

proptest::proptest! {
    /// In any text, no range is invalid, and no value stays.
    #[test]
    fn nothing_that_was_found_stays(text in "(\\PC{0,8}|password|пароль|api key|は|: |=| is |ghp_abc123|hunter22|\"|://u:|@h){0,10}") {
        let (clean, values) = extract(&text);
        for (_, value) in values {
            // A value such as "secret-1" may also be part of a name in brackets.
            let outside: String = clean.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect();
            proptest::prop_assert!(!outside.contains(value.expose()), "{}", clean);
        }
    }
}

/// Messages that are meant to take hours: each of these once took minutes or more.
#[test]
fn a_text_of_a_megabyte_is_read_in_time() {
    let many = |one: &dyn Fn(usize) -> String| (0..1 << 15).map(one).collect::<String>();
    for (what, text) in [
        ("passwords", many(&|n| format!("password: hunter{n:06} "))),
        ("passwords with names", many(&|n| format!("KEY{n}_TOKEN=abcdef{n:06} "))),
        ("tokens", many(&|n| format!("ghp_abcdef{n:06} "))),
        ("urls", many(&|n| format!("https://ann:hunter{n}@x.example/ "))),
        ("labels without values", "password ".repeat(1 << 17)),
        ("labels in one word", "a_token".repeat(1 << 17)),
        ("quotes that nobody closes", "password: \u{201e}".repeat(1 << 16)),
        ("keys that begin", "-----BEGIN PRIVATE KEY-----".repeat(1 << 15)),
        ("dashes", "-".repeat(1 << 20)),
        ("schemes", "://".repeat(1 << 18)),
        ("prefixes", "sk-".repeat(1 << 18)),
        ("dots", "eyJ.".repeat(1 << 18)),
    ] {
        let began = std::time::Instant::now();
        let (clean, found) = extract(&text);
        println!("{what}: {} ms, {} found", began.elapsed().as_millis(), found.len());
        assert!(found.len() <= 100, "{what}");
        for value in ["hunter000200", "abcdef000200", "hunter200@"] {
            assert!(!clean.contains(value), "{what}: what is not kept is taken out all the same");
        }
    }
}
