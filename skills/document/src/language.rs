//! Guesses the language of a text: by its script, else by its most frequent words.

/// Words that are looked at.
const WORDS: usize = 3_000;

/// Frequent short words, each of few languages.
const FREQUENT: [(&str, &[&str]); 14] = [
    ("en", &["the", "and", "of", "to", "is", "that", "for", "with", "are", "this", "it", "was"]),
    ("de", &["der", "die", "und", "das", "ist", "nicht", "mit", "für", "von", "den", "ein", "eine", "auf", "zu"]),
    ("fr", &["le", "les", "et", "des", "est", "une", "pour", "dans", "que", "qui", "du", "pas", "sur"]),
    ("es", &["el", "los", "y", "las", "que", "en", "una", "por", "para", "con", "es", "del", "como"]),
    ("it", &["il", "di", "che", "della", "e", "per", "una", "non", "sono", "con", "del", "gli", "nel"]),
    ("pt", &["o", "os", "e", "que", "não", "uma", "para", "com", "do", "da", "em", "são", "as"]),
    ("nl", &["de", "het", "een", "en", "van", "niet", "zijn", "voor", "met", "op", "aan", "dat", "te"]),
    ("sv", &["och", "att", "det", "som", "en", "är", "på", "för", "inte", "av", "med", "den", "till"]),
    ("da", &["og", "at", "det", "er", "en", "af", "til", "på", "ikke", "som", "med", "de", "den"]),
    ("nb", &["og", "at", "det", "er", "en", "av", "til", "på", "ikke", "som", "med", "jeg", "den"]),
    ("fi", &["ja", "on", "ei", "että", "se", "oli", "ovat", "mutta", "kun", "joka", "tai", "myös"]),
    ("pl", &["i", "w", "nie", "na", "się", "z", "do", "jest", "to", "że", "oraz", "dla"]),
    ("cs", &["a", "je", "se", "na", "že", "v", "to", "není", "pro", "jsou", "které", "nebo"]),
    ("tr", &["ve", "bir", "bu", "için", "ile", "da", "de", "olarak", "daha", "çok", "olan"]),
];

/// The code of a language, if enough speaks for it.
pub fn guess(text: &str) -> Option<&'static str> {
    by_script(text).or_else(|| by_words(text))
}

fn by_script(text: &str) -> Option<&'static str> {
    let (mut letters, mut counts) = (0_usize, [0_usize; 9]);
    for c in text.chars().filter(|c| c.is_alphabetic()).take(WORDS) {
        letters += 1;
        let script = match c {
            '\u{3040}'..='\u{30ff}' => 0,
            '\u{ac00}'..='\u{d7af}' => 1,
            '\u{4e00}'..='\u{9fff}' => 2,
            '\u{400}'..='\u{4ff}' => 3,
            '\u{370}'..='\u{3ff}' => 4,
            '\u{590}'..='\u{5ff}' => 5,
            '\u{600}'..='\u{6ff}' => 6,
            '\u{e00}'..='\u{e7f}' => 7,
            '\u{900}'..='\u{97f}' => 8,
            _ => continue,
        };
        counts[script] += 1;
    }
    if letters < 20 {
        return None;
    }
    // Japanese has Chinese characters between its own.
    if counts[0] * 10 > letters {
        return Some("ja");
    }
    let (script, count) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let code = ["ja", "ko", "zh", "ru", "el", "he", "ar", "th", "hi"][script];
    let ukrainian = || text.chars().take(WORDS * 4).filter(|c| "іїєґ".contains(*c)).count() * 100 > letters;
    (count * 2 > letters).then(|| if code == "ru" && ukrainian() { "uk" } else { code })
}

fn by_words(text: &str) -> Option<&'static str> {
    let mut counts = [0_usize; FREQUENT.len()];
    let mut total = 0;
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).take(WORDS) {
        total += 1;
        let word = word.to_lowercase();
        for (count, (_, frequent)) in counts.iter_mut().zip(FREQUENT) {
            *count += usize::from(frequent.contains(&word.as_str()));
        }
    }
    let best = (0..counts.len()).max_by_key(|index| (counts[*index], std::cmp::Reverse(*index)))?;
    // In running text, every fifth word is one of these; in tables fewer are.
    (total >= 10 && counts[best] * 14 >= total).then(|| FREQUENT[best].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_guessed() {
        for (text, code) in [
            ("The contract is valid from the first of May and ends with the year.", Some("en")),
            ("Der Vertrag ist ab dem ersten Mai gültig und endet mit dem Jahr, das nicht lang ist.", Some("de")),
            ("Le contrat est valable dans les pays et pour une année, pas plus que cela.", Some("fr")),
            ("El contrato es para los dos y las partes, por una semana, con el nombre del cliente.", Some("es")),
            ("Договор действует с первого мая и до конца года", Some("ru")),
            ("契約は五月一日から有効です。これは日本語の文です。", Some("ja")),
            ("12 13 14 A B C", None),
        ] {
            assert_eq!(guess(text), code, "{text}");
        }
    }
}
