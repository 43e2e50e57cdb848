//! Documents and pictures as the bundled skill and its commands read them in the sandbox.

use crate::harness::Home;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// A PDF file with a page for each line of text, and one page without text.
pub(crate) fn pdf(lines: &[&str]) -> Vec<u8> {
    let count = lines.len() + 1;
    let kids: String = (0..count).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    let mut text = format!(
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[{kids}]/Count {count}>>endobj\n\
         3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    );
    for (page, line) in lines.iter().copied().chain([""]).enumerate() {
        let drawn = match line {
            // A scanned page: a picture without text.
            "" => "q 180 0 0 90 10 5 cm BI /W 1 /H 1 /CS /G /BPC 8 ID @ EI Q".to_owned(),
            line => format!("BT /F 12 Tf 20 60 Td ({line}) Tj ET"),
        };
        let (this, stream) = (4 + 2 * page, 5 + 2 * page);
        text.push_str(&format!(
            "{this} 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents {stream} 0 R/Resources<</Font<</F 3 0 R>>>>>>endobj\n\
             {stream} 0 obj<</Length {}>>stream\n{drawn}\nendstream endobj\n",
            drawn.len()
        ));
    }
    text.push_str("trailer<</Root 1 0 R>>\n%%EOF\n");
    text.into_bytes()
}

/// A home whose session contains these files.
fn with_files(files: &[(&str, &[u8])]) -> Home {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let work = home.work("default");
    std::fs::create_dir_all(&work).unwrap();
    for (name, bytes) in files {
        std::fs::write(work.join(name), bytes).unwrap();
    }
    home
}

fn shell(home: &Home, line: &str) -> (i32, String, String) {
    let ran = home.kiso(&["shell", "-s", "default", "-c", line]);
    (ran.code, ran.stdout, ran.stderr)
}

#[test]
fn a_document_is_read_as_a_skill_and_by_the_names_that_people_type() {
    let rent = pdf(&["The rent is 500 EUR", "Due on the third"]);
    let home = with_files(&[
        ("rent.pdf", &rent),
        ("page.html", b"<h1>Rain</h1><p>It <b>rained</b> in <a href='x'>Oslo</a>.</p>"),
    ]);
    let told = home.kiso(&["skill", "run", "document", "file=rent.pdf", "--session", "default"]);
    told.ok();
    for part in ["The rent is 500 EUR", "Due on the third", "age 2", "page 3 is a picture"] {
        assert!(told.stdout.contains(part), "{part}: {told:?}");
    }
    let (code, text, errors) =
        shell(&home, "pdftotext -f 2 -l 2 rent.pdf - && pdfinfo rent.pdf && pandoc -t plain page.html");
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("Due on the third") && !text.contains("500 EUR"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("Pages:") && line.ends_with('3'))
            && text.contains("It rained in Oslo."),
        "{text}"
    );
    let (_, found, _) = shell(&home, "document rent.pdf --search third");
    assert!(found.contains("Due on the third") && found.contains("p. 2") && !found.contains("500 EUR"), "{found}");
    let (code, drawn, errors) =
        shell(&home, "pdftoppm -png -r 72 -f 1 -l 1 -singlefile rent.pdf one && identify -format '%m %w %h' one.png");
    assert_eq!((code, drawn.trim()), (0, "PNG 200 100"), "{errors}");
}

#[test]
fn a_document_is_made_and_read_back() {
    let home = with_files(&[
        ("a.md", b"# Rain\n\nIt **rained** in Oslo.\n"),
        ("a.html", b"<h1>Bill</h1><p>500 EUR"),
        ("a.csv", b"day,zip\n2026-05-01,01234\n"),
    ]);
    for (line, parts) in [
        ("pandoc a.md -o a.pdf && pdftotext a.pdf -", &["Rain", "It rained in Oslo."][..]),
        ("pandoc a.md -o a.docx && pandoc -t markdown a.docx", &["# Rain", "**rained**"]),
        (
            "weasyprint a.html b.pdf && wkhtmltopdf -q a.html c.pdf && pdftotext b.pdf - && pdftotext c.pdf -",
            &["500 EUR"],
        ),
        ("soffice --headless --convert-to pdf --outdir out a.docx && ls out", &["a.pdf"]),
        ("csv2xlsx a.csv && xlsx2csv a.xlsx && ssconvert a.xlsx b.csv && cmp a.csv b.csv", &["2026-05-01,01234"]),
    ] {
        let (code, text, errors) = shell(&home, line);
        assert_eq!(code, 0, "{line}: {errors}");
        assert!(parts.iter().all(|part| text.contains(part)), "{line}: {text}");
    }
}

#[test]
fn a_picture_is_converted_shown_and_described() {
    let home = with_files(&[("a.ppm", b"P3 2 2 255 255 0 0 0 255 0 0 0 255 9 9 9\n")]);
    let (code, text, errors) = shell(
        &home,
        "convert a.ppm -scale 400% b.png && mogrify -rotate 90 -crop 4x8+0+0 b.png && identify b.png && convert b.png c.jpg && image look c.jpg",
    );
    assert_eq!(code, 0, "{errors}");
    let (line, shown) = text.split_once('\n').unwrap();
    assert!(line.contains("PNG 4x8"), "{text}");
    let shown: Value = serde_json::from_str(shown).unwrap();
    assert_eq!(
        (&shown["width"], &shown["height"], &shown["source"]["format"]),
        (&4.into(), &8.into(), &"JPEG".into()),
        "{shown}"
    );
    assert!(shown["base64"].as_str().is_some_and(|bytes| bytes.len() > 50), "{shown}");
}

#[test]
fn what_cannot_be_read_is_refused_with_a_sentence_and_nothing_is_lost() {
    let half = &pdf(&["The rent is 500 EUR"])[..120];
    let bomb = b"P6 60000 60000 255\n";
    let home = with_files(&[("empty.pdf", b""), ("half.pdf", half), ("bomb.ppm", bomb), ("noise.jpg", &[7; 400])]);
    for (line, said) in [
        ("pdftotext empty.pdf -", "empty.pdf"),
        ("document half.pdf", "half.pdf"),
        ("document none.docx", "none.docx"),
        ("convert bomb.ppm a.png", "bomb.ppm"),
        ("identify noise.jpg", "noise.jpg"),
        ("convert xc:red -frobnicate a.png", "-frobnicate"),
        ("pandoc -t epub half.pdf", "epub"),
    ] {
        let (code, _, errors) = shell(&home, line);
        assert!(code == 1 && errors.contains(said) && errors.lines().count() == 1, "{line}: {code} {errors}");
    }
    assert_eq!(shell(&home, "ls; wc -c < half.pdf").1, "bomb.ppm\nempty.pdf\nhalf.pdf\nnoise.jpg\npub\n120\n");
}

/// Rule: `document` and its commands receive the passwords from the conversation; no other command does.
#[test]
fn a_password_of_the_conversation_opens_a_document() {
    let locked = include_bytes!("documents/locked.pdf");
    let home = with_files(&[("locked.pdf", locked)]);
    // A run has the secrets of its session; `kiso shell` has only those of its environment.
    let run = |line: &str| home.kiso(&["run", &format!("$ {line}")]);
    let refused = run("pdftotext locked.pdf -");
    assert!(refused.exit(1).stdout.contains("give its password in the conversation"), "{refused:?}");
    for (name, value) in
        [("other_password", "green-otter-40"), ("tax_password_2", "blue-otter-41"), ("pin", "4711-0815")]
    {
        set(&home, name, value);
    }
    let text = "The tax is 700 EUR";
    for line in
        ["pdftotext locked.pdf -", "document locked.pdf", "pandoc -t plain locked.pdf", "pdftotext -upw x locked.pdf -"]
    {
        assert!(run(line).ok().stdout.contains(text), "{line}");
    }
    run("pdftoppm -r 20 -png locked.pdf page && ls page*").ok().prints(&["page-1.png"]);
    let read = home.kiso(&["run", "document file=locked.pdf"]);
    assert!(read.ok().stdout.contains(text), "{read:?}");
    let seen = run("env; set; sh -c env; echo | xargs env").ok().stdout.clone();
    assert!(seen.contains("PWD=/work") && !seen.contains("otter") && !seen.contains("_PASSWORD"), "{seen}");
    let granted = "receive every secret of the conversation whose name ends with `password`";
    home.kiso(&["skill", "info", "document"]).ok().prints(&[granted]);
}

fn set(home: &Home, name: &str, value: &str) {
    let mut command = home.command(&["secret", "set", name]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}
