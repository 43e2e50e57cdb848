//! Recognizes kinds of messages by their words, without a model, in English, German, Spanish, French, Russian and Japanese.
//!
//! The phrases of a list are separated by commas and found as whole words; a `*` matches any end of the last word. Japanese
//! phrases are found anywhere, because Japanese is written without spaces.

/// Only the beginning of a message is searched: a person types cues there, and the rest may be a pasted document.
const MAX_HEARD: usize = 4_000;

/// A message in the form in which it is searched.
struct Heard {
    /// In lower case and trimmed, otherwise unchanged.
    raw: String,
    /// Its words, with one space before, between and after them.
    words: String,
    /// Whether the message is longer than the part that is searched.
    cut: bool,
}

impl Heard {
    fn new(message: &str) -> Self {
        let head = &message[..message.floor_char_boundary(MAX_HEARD)];
        // Russian is often typed without the two dots.
        let raw = head.trim().to_lowercase().replace('ё', "е");
        let mut words = String::from(" ");
        for word in raw.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            words.push_str(word);
            words.push(' ');
        }
        Self { raw, words, cut: head.len() < message.len() }
    }

    fn has(&self, phrase: &str) -> bool {
        if phrase.contains(unspaced) {
            return self.raw.contains(phrase);
        }
        match phrase.strip_suffix('*') {
            Some(stem) => self.words.contains(&format!(" {stem}")),
            None => self.words.contains(&format!(" {phrase} ")),
        }
    }

    fn begins(&self, phrase: &str) -> bool {
        if phrase.contains(unspaced) { self.raw.starts_with(phrase) } else { starts(&self.words, phrase).is_some() }
    }

    fn has_any(&self, phrases: &'static str) -> bool {
        each(phrases).any(|phrase| self.has(phrase))
    }

    fn begins_any(&self, phrases: &'static str) -> bool {
        each(phrases).any(|phrase| self.begins(phrase))
    }

    /// Whether it has at most this many words. A character of a script without spaces counts as half a word.
    fn at_most(&self, words: usize) -> bool {
        let spaced = self.words.split_whitespace().filter(|word| !word.contains(unspaced)).count();
        let others = self.raw.chars().filter(|&c| unspaced(c)).count();
        !self.cut && spaced + others / 2 <= words
    }
}

/// Returns the phrases of a list.
fn each(phrases: &'static str) -> impl Iterator<Item = &'static str> {
    phrases.split(',').map(str::trim)
}

/// Returns the rest of `words` after `phrase`, with its leading space.
fn starts<'a>(words: &'a str, phrase: &str) -> Option<&'a str> {
    let words = words.strip_prefix(' ')?;
    match phrase.strip_suffix('*') {
        Some(stem) => words.strip_prefix(stem),
        None => words.strip_prefix(phrase).filter(|rest| rest.starts_with(' ')),
    }
}

/// Whether a character belongs to a script without spaces between words: kana and ideographs.
fn unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff66}'..='\u{ff9f}')
}

/// Maximum words of a message for the fast path.
const MAX_FAST: usize = 16;

/// Characters other than letters that the fast path allows: no digits, names of files, addresses, tags, commands or arguments.
const PLAIN: &str = " ,.?!'’-¿¡…;()«»、。？！・";

const GREETINGS: &str = "
    hi, hello, hey, good morning, good afternoon, good evening, good night, thanks, thank you, many thanks,
    thanks a lot, bye, goodbye, how are you, hallo, guten morgen, guten tag, guten abend, gute nacht, danke,
    vielen dank, tschüss, wie geht es dir, wie geht s, moin, hola, buenos días, buenos dias, buenas tardes,
    buenas noches, gracias, muchas gracias, adiós, cómo estás, bonjour, bonsoir, salut, merci, merci beaucoup,
    au revoir, ça va, привет, здравствуйте, добрый день, доброе утро, добрый вечер, спасибо, как дела,
    see you, see you later, servus, grüß dich, danke schön, bis später, bis bald, buenas, hasta luego, qué tal, coucou,
    à bientôt, comment vas tu, comment allez vous, большое спасибо, пока, до свидания";

const JAPANESE_GREETINGS: &str = "
    こんにちは, こんばんは, おはようございます, おはよう, ありがとうございます, ありがとう, はじめまして,
    おやすみなさい";

/// Words after a greeting that ask for nothing.
const ADDRESSED: &str = "
    kiso, there, everyone, all, again, very, much, zusammen, a todos, tout le monde, всем, so, that helped, das hat geholfen,
    por todo, c est parfait, за помощь";

/// Beginnings of questions about general knowledge, as opposed to the user's own things.
const QUESTIONS: &str = "
    what is, what are, what s, what does, what do, what was, why is, why are, why do, why does, how do, how does,
    how is, explain, define, can you explain, could you explain, please explain, tell me about, who are you,
    what can you do, was ist, was sind, was bedeutet, warum ist, warum sind, wieso ist, wie funktioniert,
    wie funktionieren, erkläre, erklär, erkläre mir, erklär mir, wer bist du, was kannst du, qué es, que es,
    qué son, que son, qué significa, por qué, cómo funciona, cómo funcionan, explica, explícame, explicame,
    quién eres, qué puedes hacer, qu est ce que, qu est ce qu, c est quoi, que signifie, pourquoi,
    comment fonctionne, comment fonctionnent, explique, explique moi, qui es tu, что такое, кто такой,
    что значит, что означает, почему, как работает, объясни, кто ты, tell me a joke, erzähl mir einen witz,
    cuéntame un chiste, que peux tu faire, raconte moi une blague, что ты умеешь, расскажи анекдот";

const JAPANESE_QUESTIONS: &str = "
    とは何, とはなん, とは？, とは?, って何, ってなん, を説明して, について説明して, あなたは誰";

/// Words about work, the user's own things, and things that change from day to day. A single one of them sends the message to the
/// router.
const TOOL_WORDS: &str = "
    run*, execut*, creat*, writ*, mak*, build*, search*, find*, look*, fetch*, download*, upload*, open*, read*,
    file*, folder*, director*, workspace*, convert*, translat*, draw*, plot*, chart*, graph, graphs, diagram*,
    list*, show*, delet*, remov*, instal*, send*, sav*, remember*, schedul*, remind*, today*, tomorrow*,
    yesterday*, now, latest, newest, current*, recent*, weather*, news*, price*, cost*, time, date, calculat*,
    comput*, sum, summar*, count*, number*, many, total*, data, table*, csv, json, pdf, image*, picture*, page*,
    website*, url*, link*, mail*, email*, messag*, server*, log, logs, error*, fail*, wrong, broken, status,
    next, left, task*, plan*, skill*, tool*, command*, script*, test*, deploy*, updat*, chang*, fix*, check*,
    compar*, analy*, monitor*, version*, stock*, score*,
    tonight, week*, happen*, going, doing, working, not, you, my, me, our, we, us, this, that, these, those, it, its,
    here, said, above, attach*, last, previous, mine, disk*, memory, secret*, password*, key, token*,
    führ*, erstell*, schreib*, mach*, bau*, such*, finde*, hol*, lad*, öffne*, lies*, lese*, datei*, ordner*,
    verzeichnis*, wandl*, übersetz*, zeichne*, zeig*, lösch*, entfern*, sende*, schick*, speicher*, merk*,
    erinner*, heute*, morgen, gestern, jetzt, aktuell*, neueste*, wetter*, nachricht*, preis*, kost*, uhr*,
    datum*, berechn*, rechne*, summ*, zähl*, wie viel*, wieviel*, tabelle*, bild*, seite*, fehler*, falsch*,
    kaputt*, aufgabe*, prüf*, vergleich*, änder*, mein*, unser*, wir, mir die, dies*, das hier, hier, letzte*,
    daten, passwort*, passier*, gescheh*, los, nicht,
    ejecut*, crea, crear, escrib*, haz, hacer un*, busca*, encuentr*, descarg*, abre*, abrir, lee, leer,
    archivo*, carpeta*, fichero*, directorio*, conviert*, traduc*, dibuj*, gráfic*, muestr*, borr*, elimin*,
    envi*, guard*, recuerd*, hoy, mañana, ayer, ahora, actual*, último*, última*, tiempo, clima, noticia*,
    precio*, cuest*, hora, fecha, calcul*, cuánt*, datos, tabla*, imagen*, página*, falla*, tarea*, compr*,
    compar*, mi, mis, nuestr*, esto, este, esta, eso, ese, esa, aquí, contraseña*, pasa, pasando, pasó, no,
    exécut*, lance*, crée*, créer, écri*, fais, faire un*, cherche*, trouv*, télécharg*, ouvr*, lis, lire,
    fichier*, dossier*, répertoire*, conver*, tradui*, dessin*, graphique*, montre*, affiche*, supprim*, envoi*,
    envoy*, enregistr*, souvien*, rappel*, aujourd*, demain, hier, maintenant, actuel*, dernier*, dernière*,
    météo, nouvelle*, prix, coût*, coute, heure*, calcul*, combien, données, tableau*, imag*, erreur*, tâche*,
    vérif*, compar*, mon, ma, mes, notre, nos, ceci, cela, ça marche, ce, cet, cette, ces, ici,
    mot de passe, pas, passe,
    запус*, выполн*, созда*, напиш*, сдела*, собер*, найд*, поищ*, поиск*, скача*, откро*, прочит*, прочт*,
    файл*, папк*, каталог*, конверт*, перевед*, нарису*, график*, покаж*, удал*, отправ*, сохран*, запомн*,
    напомн*, сегодня, завтра, вчера, сейчас, текущ*, последн*, погод*, новост*, цен*, стои*, врем*, дат*,
    посчита*, вычисл*, сколько, данн*, таблиц*, картин*, страниц*, ошибк*, задач*, провер*, сравн*,
    мой, моя, мое, мои, моем, наш*, это, этот, эта, этого, здесь, тут, парол*, происход*, случил*, не,
    ファイル, フォルダ, 検索, 調べ, 探, 作成, 作っ, 書い, 書き, 実行, 計算, 天気, 今日, 明日, 昨日, 今, 現在,
    最新, 最近, ニュース, 保存, 削除, 消し, 送, 開い, 読ん, 読み, ダウンロード, グラフ, 画像, 表示, 見せ, 予定,
    覚え, 変換, 翻訳, 私, 僕, 俺, これ, それ, あれ, この, その, あの, ここ, いくら, いくつ, 何時, 何日, エラー,
    データ, 確認, パスワード";

/// "the" in English mostly refers to a particular thing; in these phrases it does not.
const THE: &str = "
    the difference between, the meaning of, the purpose of, the capital of, the definition of, the concept of,
    the idea behind, the point of";

/// Whether a message can be answered without tools and without asking the router: a greeting, or a short question about what
/// something is. In doubt, the answer is no, which costs one small model call; a wrong yes would leave work undone.
pub fn fast_path(message: &str) -> bool {
    let heard = Heard::new(message);
    let text = heard.raw.as_str();
    if text.is_empty() || text.starts_with('!') || !heard.at_most(MAX_FAST) {
        return false;
    }
    if !text.chars().all(|c| c.is_alphabetic() || PLAIN.contains(c)) || within_a_word(text, '.') {
        return false;
    }
    if heard.words.contains(" the ") && (heard.words.matches(" the ").count() > 1 || !heard.has_any(THE)) {
        return false;
    }
    if text.contains(unspaced) {
        let mut rest = text;
        while let Some(greeted) = each(JAPANESE_GREETINGS).find_map(|greeting| rest.strip_prefix(greeting)) {
            rest = greeted.trim_start_matches(|c: char| !c.is_alphabetic());
        }
        return rest.is_empty() || heard.has_any(JAPANESE_QUESTIONS) && !heard.has_any(TOOL_WORDS);
    }
    let rest = after_greeting(&heard.words);
    if rest.trim().is_empty() {
        return true;
    }
    // Only the rest of the question is searched: "ce" in "qu'est-ce que" refers to nothing.
    let asked = each(QUESTIONS).filter_map(|question| starts(rest, question)).min_by_key(|asked| asked.len());
    asked.is_some_and(|asked| !Heard::new(asked).has_any(TOOL_WORDS))
}

/// Whether `mark` is between two letters or digits, as in the name of a file.
fn within_a_word(text: &str, mark: char) -> bool {
    let inner = |at: usize| {
        let after = text[at + mark.len_utf8()..].chars().next();
        let before = text[..at].chars().next_back();
        before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
    };
    text.match_indices(mark).any(|(at, _)| inner(at))
}

fn after_greeting(words: &str) -> &str {
    let mut rest = words;
    let mut greeted = false;
    loop {
        // Longest first: "thanks a lot" begins with "thanks".
        let greetings = each(GREETINGS).filter_map(|greeting| starts(rest, greeting));
        let fillers = each(ADDRESSED).filter(|_| greeted).filter_map(|filler| starts(rest, filler));
        match greetings.chain(fillers).min_by_key(|rest| rest.len()) {
            Some(shorter) => rest = shorter,
            None => return rest,
        }
        greeted = true;
    }
}

const LASTING: &str = "
    i prefer, i d prefer, i would prefer, i like, i love, i hate, i dislike, i don t like, my name is, my name s,
    call me, i am called, i live in, i work, i m a, i am a, i m an, i am an, i m from, i am from, i use,
    i always, i never, i usually, my favorite, my favourite, my birthday, my email is, my address is,
    my time zone, my timezone, my language, we use, we are using, we re using, we decided, we have decided,
    we agreed, we switched, we moved to, our project, our team, our company, our stack, please remember,
    remember that, remember my, don t forget, do not forget, keep in mind, from now on, in future,
    in the future always, always use, never use, always answer, always reply, never answer, take note,
    i am allergic, i m allergic, is allergic, are allergic, has an allergy, have an allergy, is vegetarian, is vegan, is lactose,
    my wife is, my wife s name, my wife has, my husband is, my husband s name, my husband has, my partner is, my partner has,
    my daughter is, my daughter s name, my daughter has, my son is, my son s name, my son has, my kids are, my children are,
    my mother is, my father is, my dog is, my cat is, we are a family, we have two, we have three,
    ich bevorzuge, ich mag, ich hasse, ich liebe, ich möchte immer, mir ist lieber, mein name ist, ich heiße,
    ich heisse, nenn mich, nenne mich, ich wohne, ich lebe in, ich arbeite, ich bin ein, ich bin eine,
    ich komme aus, ich benutze, ich verwende, ich nutze, wir benutzen, wir verwenden, wir nutzen,
    wir haben beschlossen, wir haben uns entschieden, unser projekt, unser team, merk dir, merke dir,
    vergiss nicht, denk daran, ab jetzt, von nun an, in zukunft, mein lieblings*, allergisch, hat eine allergie,
    habe eine allergie, ist vegetarisch, ist vegan, ist vegetarier*, ist veganer*, verträgt kein*, meine frau ist, meine frau heißt, meine frau hat, mein mann ist,
    mein mann heißt, mein mann hat, meine tochter ist, meine tochter heißt, meine tochter hat, mein sohn ist, mein sohn heißt,
    mein sohn hat, meine kinder sind, meine mutter ist, mein vater ist, mein hund heißt, meine katze heißt,
    prefiero, me gusta, no me gusta, odio, me llamo, mi nombre es, llámame, vivo en, trabajo en, trabajo como,
    es alérgic*, soy alérgic*, tiene alergia, tengo alergia, mi mujer es, mi esposa es, mi marido es, mi hija es, mi hijo es, mi hija tiene, mi hijo tiene,
    soy un, soy una, soy de, yo uso, usamos, utilizamos, hemos decidido, decidimos, nuestro proyecto,
    nuestro equipo, recuerda que, no olvides, a partir de ahora, de ahora en adelante, ten en cuenta,
    mi favorit*,
    je préfère, j aime, je n aime pas, je déteste, je m appelle, mon nom est, appelle moi, j habite, je vis,
    est allergique, suis allergique, a une allergie, ma femme est, mon mari est, ma fille est, mon fils est, ma fille a, mon fils a,
    je travaille, je suis un, je suis une, je viens de, j utilise, nous utilisons, on utilise, nous avons décidé,
    on a décidé, notre projet, notre équipe, souviens toi, rappelle toi, retiens que, n oublie pas,
    à partir de maintenant, désormais,
    я предпочитаю, мне нравится, мне не нравится, я люблю, я ненавижу, меня зовут, мое имя, зови меня, я живу,
    аллергия на, у моей жены, у моего мужа, у моей дочери, у моего сына, мою дочь зовут, моего сына зовут,
    я работаю, я использую, я пользуюсь, я из, мы используем, мы пользуемся, мы решили, наш проект, наша команда,
    запомни, не забудь, не забывай, имей в виду, отныне, с этого момента, впредь,
    アレルギーが, が好き, が嫌い, の方が好き, 私の名前, 僕の名前, と申します, と呼んで, に住んで, で働いて, を使っています,
    を使ってます, を使うことに, ことに決め, 覚えておいて, 覚えて, 忘れないで, 今後は, これからは,
    私たちのプロジェクト";

/// Words at the beginning of a sentence that ask to remember it.
const REMEMBER: &str = "
    remember, note that, fyi";

/// Whether a message states something that is worth remembering after it: a preference, something about the user or their people,
/// the state of their project. Questions state nothing.
pub fn durable(message: &str) -> bool {
    lasting_sentences(message).next().is_some()
}

/// Returns the sentences of a message that state something lasting.
pub fn lasting_sentences(message: &str) -> impl Iterator<Item = &str> {
    let head = &message[..message.floor_char_boundary(MAX_HEARD)];
    let sentences = head.split_inclusive(['.', '!', '?', ';', '\n', '。', '！', '？']);
    let lasts = |sentence: &&str| {
        let heard = Heard::new(sentence);
        heard.begins_any(REMEMBER) || heard.has_any(LASTING)
    };
    sentences.filter(|sentence| !sentence.ends_with(['?', '？'])).filter(lasts).map(str::trim)
}

/// Maximum characters of a sentence that is stored unchanged as a fact, and maximum number of such sentences.
const MAX_STATED: usize = 280;
const MOST_STATED: usize = 4;

/// Returns [`lasting_sentences`] as facts, for use without a model.
pub fn facts_in(message: &str) -> impl Iterator<Item = String> {
    let short = lasting_sentences(message).filter(|sentence| sentence.chars().count() <= MAX_STATED);
    short.take(MOST_STATED).map(|sentence| format!("The user said: {sentence}"))
}

/// Maximum words of an addition to the current turn; a longer message is a new one.
const MAX_ADDITION: usize = 40;

/// Fewer words after an "and": a whole new request may begin with it.
const MAX_AND: usize = 12;

/// Beginnings that continue the previous message, whatever follows.
const ADDING: &str = "
    also, i meant, i mean, oh and, and also, one more thing, correction, actually, i forgot, forgot to,
    on second thought, no i mean*, not that, make that, außerdem, ich meinte, ich meine, nein ich mein*, ach und,
    und auch, noch etwas, noch was, korrektur, ich habe vergessen, doch lieber, además, quise decir,
    quería decir, una cosa más, corrección, y también, olvidé, mejor dicho, en fait, je voulais dire,
    je veux dire, encore une chose, et aussi, j ai oublié, j oubliais, plutôt, также, я имел в виду,
    я имела в виду, точнее, еще одно, и еще, забыл, забыла, поправка, кстати еще, あと、, それと, あ、それから,
    ではなく, じゃなくて, 間違え, 訂正, 追加で, ついでに";

/// Beginnings that do so only before a pause: "wait, not that one", but not "wait until noon and call me".
const HALTING: &str = "
    wait, no, sorry, hold on, stop, oh, oops, warte, nein, moment, halt, entschuldigung, ups, espera, no, perdón,
    attends, non, pardon, désolé, стой, подожди, погоди, нет, извини, ой, 待って, ちょっと待って, いや, いいえ,
    違う, ごめん, あ";

const ANDS: &str = "
    and, plus, und, y, et, и, そして, また";

/// Whether a message that arrives during a turn adds to it or corrects it, instead of beginning something new.
pub fn continues(message: &str) -> bool {
    let heard = Heard::new(message);
    if !heard.at_most(MAX_ADDITION) {
        return false;
    }
    let halts = |word: &str| {
        let rest = heard.raw.strip_prefix(word).map(str::trim_start);
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with([',', '.', '!', '…', '-', '–', '—', ':', '、', '。', '！'])
        })
    };
    heard.begins_any(ADDING) || each(HALTING).any(halts) || heard.at_most(MAX_AND) && heard.begins_any(ANDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fails and lists all lines for which `cue` does not return `expected`.
    #[track_caller]
    fn all(cue: fn(&str) -> bool, expected: bool, lines: &[&str]) {
        let wrong: Vec<_> = lines.iter().filter(|line| cue(line) != expected).collect();
        assert!(wrong.is_empty(), "expected {expected}: {wrong:#?}");
    }

    #[test]
    fn talk_takes_the_fast_path() {
        all(
            fast_path,
            true,
            &[
                "Hi!",
                "Hello kiso",
                "Thanks a lot!",
                "Hi there, how are you?",
                "What is a monad?",
                "Hello, what is photosynthesis?",
                "What's entropy?",
                "Why is grass green?",
                "How does a transistor work?",
                "Danke!",
                "Hallo, was ist ein Monoid?",
                "Wie funktioniert ein Transistor?",
                "¿Cómo funciona un transistor?",
                "Pourquoi les feuilles sont-elles vertes ?",
                "Почему трава зелёная?",
                "Как работает транзистор?",
                "モナドって何？",
                "Explain recursion.",
                "What is the difference between TCP and UDP?",
                "Who are you?",
                "Guten Morgen!",
                "Was ist Photosynthese?",
                "Erkläre mir Rekursion.",
                "¡Hola!",
                "¿Qué es la fotosíntesis?",
                "Bonjour",
                "Qu'est-ce que la photosynthèse ?",
                "Привет!",
                "Что такое фотосинтез?",
                "Объясни рекурсию",
                "こんにちは！",
                "光合成とは何ですか？",
                "おはようございます。光合成とは何ですか",
            ],
        );
    }

    /// Two hundred messages in five languages. A wrong yes leaves work undone; a wrong no costs one small call.
    #[test]
    fn the_fast_path_is_measured() {
        let (mut talk, mut missed, mut wrong) = (0, Vec::new(), Vec::new());
        let lines = include_str!("cues/messages.txt").lines().filter(|line| !line.starts_with('#'));
        let lines: Vec<_> = lines.map(|line| line.split_once('\t').expect("a kind and a message")).collect();
        for (kind, message) in &lines {
            let fast = fast_path(message);
            talk += usize::from(*kind == "talk");
            match *kind {
                "talk" if !fast => missed.push(message),
                "work" if fast => wrong.push(message),
                _ => {}
            }
        }
        assert_eq!((lines.len(), talk), (200, 100));
        assert_eq!(wrong, Vec::<&&str>::new(), "these need tools");
        assert!(missed.len() <= 5, "{} of {talk} ask the router for nothing: {missed:#?}", missed.len());
    }

    #[test]
    fn work_does_not() {
        all(
            fast_path,
            false,
            &[
                "",
                "  \n ",
                "ok",
                "yes",
                "Hi, deploy the site",
                "What is in data.csv?",
                "What is the weather?",
                "What is my name?",
                "What is it?",
                "What is the status",
                "What is 17 km in miles?",
                "$ ls",
                "what is $HOME",
                "explain #rust",
                "explain https://example.org",
                "skill chart file=a.csv",
                "!daily hello",
                "explain ref:input-1",
                "What is the disk usage",
                "why does the build fail",
                "What is a monad?\nAnd list the files.",
                "Explain recursion and then write a poem about it",
                "Was ist in der Datei?",
                "Was ist das Wetter heute?",
                "¿Qué es este archivo?",
                "Qu'est-ce que ce fichier ?",
                "Что такое этот файл?",
                "Какая погода?",
                "今日の天気とは？",
                "このファイルとは何ですか？",
                "画像を作って",
                "Hvad er en monade?",
                "Was ist los?",
                "¿Qué es lo que pasa?",
                "Что происходит?",
                "Hi, can you book a flight?",
                "Hello, our build is red",
                "thanks, now do the rest",
                "What is happening in Berlin tonight?",
                "What are you working on?",
                "What is running?",
                "How do I look today?",
                "Explain it again",
                "Tell me about yesterday",
                "What is my workspace",
                "What is Ada's number?",
                "what is example.org",
                "Was ist passiert?",
                "Warum ist der Server langsam?",
                "¿Por qué no funciona mi programa?",
                "Pourquoi ça ne marche pas ?",
                "Почему не работает сайт?",
                "Объясни этот код",
                "Спасибо, удали файл",
                "こんにちは、ファイルを探して",
                "このコードを説明して",
                &format!("what is {}", "a ".repeat(40)),
                &format!("what is {} and delete all", "a".repeat(5_000)),
            ],
        );
    }

    #[test]
    fn statements_that_last_are_durable() {
        all(
            durable,
            true,
            &[
                "I prefer metric units.",
                "my name is Ada",
                "By the way, we use PostgreSQL 16. Which index fits?",
                "Remember the milk",
                "Please remember that I am vegetarian",
                "From now on answer in French",
                "Ich bevorzuge kurze Antworten",
                "Ich heiße Jürgen",
                "Merk dir das",
                "Me llamo Ana",
                "Prefiero el té",
                "J'habite à Lyon",
                "Je m’appelle Zoé",
                "Меня зовут Иван",
                "Мы используем Rust",
                "Моё имя Пётр",
                "私の名前は太郎です",
                "覚えておいて：締切は金曜日",
                // Rule: facts about the user's people are lasting, too.
                "My daughter Mia is allergic to nuts. What can I cook?",
                "Meine Tochter ist gegen Nüsse allergisch",
                "Mi hija es alérgica a las nueces",
                "Mon fils est allergique aux noix",
                "У моей дочери аллергия на орехи",
                "娘はナッツのアレルギーがあります",
            ],
        );
        all(
            durable,
            false,
            &[
                "What is my name?",
                "Do you remember what I prefer?",
                "draw a chart",
                "I can't remember the word",
                "What do we use?",
                "Why do people say that I like tea?",
                "list the files we made",
                "Ich suche ein Restaurant",
                "Wie ist das Wetter?",
                "",
            ],
        );
    }

    #[test]
    fn additions_and_corrections_continue_the_turn() {
        all(
            continues,
            true,
            &[
                "also add a legend",
                "wait, use the other file",
                "Wait!",
                "no, I meant 2024",
                "No I meant the second",
                "and make it red",
                "Actually use PNG",
                "sorry - b.csv",
                "Außerdem bitte als PNG",
                "Warte, nimm die andere Datei",
                "Además en rojo",
                "En fait, utilise PNG",
                "Нет, я имел в виду второй",
                "и ещё добавь легенду",
                "待って、別のファイル",
            ],
        );
        all(
            continues,
            false,
            &[
                "draw a chart",
                "wait until noon and then call me",
                "no files are to be changed",
                "What is Rust?",
                "",
                "/status",
                "andrew wrote a mail",
                &format!("and {}", "then do something else ".repeat(5)),
                &format!("also {}", "then do something else ".repeat(20)),
            ],
        );
    }

    proptest! {
        /// No text breaks a cue, and any digit or sign of a command, path or argument sends the message to the router.
        #[test]
        fn any_text_is_heard(text in "\\PC{0,60}", sign in "[0-9$#@/=`:{}\\\\]") {
            let _ = (durable(&text), continues(&text), fast_path(&text));
            let marked = format!("{text}{sign}x");
            prop_assert!(!fast_path(&marked));
        }
    }
}
