use super::*;

fn parsed(words: &[&str]) -> Result<Line, Failed> {
    Line::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

#[test]
fn letters_stand_together_and_take_the_rest_of_the_word() {
    let line = parsed(&["-fsSLo", "out", "-XPOST", "-H", "A: b", "http://h/"]).unwrap();
    let options = &line.groups[0];
    assert!(line.silent && line.show_error && options.location && options.fail == Fail::WithoutBody);
    assert_eq!((options.method.as_deref(), options.headers.as_slice()), (Some("POST"), &["A: b".to_owned()][..]));
    let output = Some(Output::Named("out".into()));
    assert_eq!(options.targets, [Target { url: Some("http://h/".into()), output, upload: None }]);
}

#[test]
fn outputs_belong_to_urls_in_their_order() {
    let line = parsed(&["-O", "a/1", "-o", "x", "b/2", "c/3", "--next", "-I", "d/4"]).unwrap();
    let outputs: Vec<_> = line.groups[0].targets.iter().map(|target| target.output.clone()).collect();
    assert_eq!(outputs, [Some(Output::Remote), Some(Output::Named("x".into())), None]);
    assert!(line.groups.len() == 2 && line.groups[1].head && !line.groups[0].head);
}

#[test]
fn options_can_be_taken_back_and_abbreviated() {
    let words = ["-sL", "--no-silent", "--no-location", "--max-t", "2.5", "--no-progress-meter", "--no-buffer", "h"];
    let line = parsed(&words).unwrap();
    let options = &line.groups[0];
    assert!(!line.silent && !options.location && options.no_buffer);
    assert_eq!(options.max_time, Some(Duration::from_millis(2500)));
}

#[test]
fn mistakes_have_curls_words_and_codes() {
    let verified = "option -k: certificates are always verified; an administrator can add one with [network] ca_file";
    for (words, code, message) in [
        (&["--foo", "h"][..], 2, "option --foo: is unknown"),
        (&["-o"], 2, "option -o: requires parameter"),
        (&["-y1x", "h"], 2, "option -y: use -m to limit the time"),
        (&["-m", "x", "h"], 2, "option -m: expected a proper numerical parameter"),
        (&["-sk", "h"], 2, verified),
        (&["--proxy", "p:1", "h"], 5, "option --proxy: proxies are not used; kiso connects to the host itself"),
        (&["-n", "h"], 2, "option -n: no .netrc is read; give the login with -u"),
        (&["--retry", "-", "h"], 2, "option --retry: expected a proper numerical parameter"),
    ] {
        let failed = parsed(words).unwrap_err();
        assert_eq!((failed.code, failed.message.as_str()), (code, message), "{words:?}");
    }
}

#[test]
fn values_are_bounded() {
    let line = parsed(&["--max-redirs", "-1", "--retry", "99999", "--limit-rate", "2k", "-r", "5", "h"]).unwrap();
    let options = &line.groups[0];
    let most = crate::limits::REDIRECTS;
    assert_eq!((options.max_redirects, options.retries, options.limit_rate), (most, 1_000, Some(2048)));
    assert_eq!(options.range.as_deref(), Some("5-"));
    let only = parsed(&["--proto", "=https", "--proto-redir", "-http", "h"]).unwrap();
    assert_eq!((&only.groups[0].protocols, &only.groups[0].redirect_protocols), (&vec!["https"], &vec!["https"]));
}
