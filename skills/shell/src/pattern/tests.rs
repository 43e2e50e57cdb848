use super::*;

fn pattern(source: &str) -> Pattern {
    let mut marks = Vec::new();
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        marks.push(if c == '\\' { (chars.next().unwrap_or('\\'), true) } else { (c, false) });
    }
    Pattern::new(&marks, true, false)
}

/// As bash 5.2 answers `[[ text == pattern ]]`.
#[test]
fn matches() {
    let cases = [
        ("", "", true),
        ("*", "", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-b-b-d", false),
        ("??", "é!", true),
        (r"\*", "*", true),
        (r"\*", "x", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[^a-c]x", "dx", true),
        ("[]x]", "]", true),
        ("[!]x]", "]", false),
        ("[a-]", "-", true),
        ("[-a]", "-", true),
        (r"[a\-c]", "b", false),
        ("[[:alpha:][:digit:]_]", "7", true),
        ("[[:upper:]]", "a", false),
        ("[[:nonsense:]]", "a", false),
        ("[[.-.]]", "-", true),
        ("[a", "[a", true),
        ("[]", "[]", true),
        ("x[[", "x[[", true),
        ("@(a|bc)d", "bcd", true),
        ("@(a|bc)d", "abcd", false),
        ("?(a)b", "b", true),
        ("*(ab)", "ababab", true),
        ("*(ab)", "aba", false),
        ("+(ab)", "", false),
        ("!(a|b)", "c", true),
        ("!(a|b)", "a", false),
        ("!(a|b)", "", true),
        ("a!(b)c", "abc", false),
        ("a!(b)c", "abbc", true),
        ("!(*.txt)", "x.txt", false),
        ("@(a*(b|@(c|d)))e", "abcdde", true),
        ("@(", "@(", true),
        ("+(x", "+(x", true),
        ("@()", "", true),
        ("(a)", "(a)", true),
    ];
    for (source, text, expected) in cases {
        assert_eq!(pattern(source).matches_text(text), expected, "{source} on {text}");
    }
}

#[test]
fn ends_of_a_text() {
    let text: Vec<char> = "aXbXc".chars().collect();
    assert_eq!((pattern("*X").prefix(&text, false), pattern("*X").prefix(&text, true)), (Some(2), Some(4)));
    assert_eq!((pattern("X*").suffix(&text, false), pattern("X*").suffix(&text, true)), (Some(3), Some(1)));
    assert_eq!(pattern("+(?X)").prefix(&text, true), Some(4));
    assert_eq!(pattern("X@(b|c)").suffix(&text, true), Some(3));
    assert_eq!(pattern("z*").prefix(&text, true), None);
}

/// Matching by trying would not end before the test is given up.
#[test]
fn hard_patterns_end() {
    let text = "a".repeat(5000);
    assert!(!pattern(&("*a".repeat(50) + "*b")).matches_text(&text));
    let text = "a".repeat(300);
    for source in ["+(a|aa)b", "+(+(+(a)))b", "*(*(*(a)*)*)b", "!(!(!(a)))b", "+(*a*a*)b"] {
        assert!(!pattern(source).matches_text(&text), "{source}");
    }
    let deep = "@(".repeat(10_000) + "a" + &")".repeat(10_000);
    assert!(!pattern(&deep).matches_text("a"), "deep groups are plain text");
    assert!(!pattern(&"[".repeat(20_000)).matches_text("a"));
}

#[test]
fn case_may_not_matter() {
    let marks: Vec<Mark> = "a[b-c]É".chars().map(|c| (c, false)).collect();
    assert!(Pattern::new(&marks, false, true).matches_text("ABé"));
    assert!(!Pattern::new(&marks, false, false).matches_text("ABé"));
}
