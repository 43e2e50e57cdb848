//! The skill: a request as JSON on standard input, and a reply as JSON.

use crate::command::{read_operation, write_file};
use crate::encode::{Format, encode};
use crate::kind::{KNOWN, Kind};
use crate::look::{MAX_FILE_BYTES, Origin, Shown, View, look};
use crate::metadata;
use crate::operation::{Operation, Settings};
use crate::source::Source;
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// What a skill reads.
#[derive(Deserialize)]
struct Request {
    args: Call,
    #[serde(default = "work")]
    workspace: String,
}

fn work() -> String {
    "/work".to_owned()
}

/// The arguments, as `kiso.toml` declares them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    file: String,
    #[serde(default, rename = "do")]
    action: Action,
    region: Option<Vec<f64>>,
    longest: Option<u32>,
    pixels: Option<u64>,
    max_bytes: Option<usize>,
    page: Option<usize>,
    out: Option<String>,
    resize: Option<String>,
    crop: Option<String>,
    rotate: Option<f64>,
    flip: Option<Flip>,
    #[serde(default)]
    gray: bool,
    quality: Option<u8>,
    #[serde(default)]
    keep_metadata: bool,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Info,
    Look,
    Convert,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Flip {
    Horizontal,
    Vertical,
}

/// A picture for a model.
#[derive(Serialize)]
struct Answer {
    media_type: &'static str,
    width: u32,
    height: u32,
    /// Left, top, width and height in the source.
    region: [u32; 4],
    source: Origin,
    /// The picture, unless it went into a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl Answer {
    fn new(shown: &Shown) -> Self {
        let part = shown.region;
        Self {
            media_type: shown.media_type,
            width: shown.width,
            height: shown.height,
            region: [part.x, part.y, part.width, part.height],
            source: shown.source.clone(),
            base64: None,
            file: None,
        }
    }
}

/// Answers a request.
pub fn answer(request: &str) -> Result<String, String> {
    let request: Request = serde_json::from_str(request).map_err(|e| format!("the request is not valid: {e}"))?;
    let call = request.args;
    let path = in_workspace(&request.workspace, &call.file);
    let file = call.file.clone();
    let source = Source::new(crate::source::read_file(&path)?).map_err(|e| format!("{file}: {e}"))?;
    let out = call.out.as_ref().map(|out| (out.clone(), in_workspace(&request.workspace, out)));
    let answer = match call.action {
        Action::Info => info(&source),
        Action::Look => show(&source, &call, out),
        Action::Convert => convert(&source, &call, out),
    };
    let answer = answer.map_err(|e| format!("{file}: {e}"))?;
    Ok(format!("{answer}\n"))
}

fn in_workspace(workspace: &str, file: &str) -> String {
    if file.starts_with('/') { file.to_owned() } else { format!("{workspace}/{file}") }
}

fn view(call: &Call) -> Result<View, String> {
    let usual = View::default();
    let region = match call.region.as_deref() {
        None => None,
        Some(&[x, y, width, height]) => Some([x, y, width, height]),
        Some(_) => return Err("region needs four numbers: left, top, width and height".to_owned()),
    };
    Ok(View {
        region,
        longest: call.longest.unwrap_or(usual.longest).clamp(1, 8_192),
        pixels: call.pixels.unwrap_or(usual.pixels).clamp(1, 32_000_000),
        max_bytes: call.max_bytes.unwrap_or(if call.out.is_some() { MAX_FILE_BYTES } else { usual.max_bytes }),
        page: call.page.unwrap_or(0),
    })
}

fn show(source: &Source, call: &Call, out: Option<(String, String)>) -> Result<Value, String> {
    let shown = look(source, &view(call)?)?;
    let mut answer = Answer::new(&shown);
    match out {
        Some((name, path)) => {
            write_file(&path, &shown.bytes)?;
            answer.file = Some(name);
        }
        None => answer.base64 = Some(BASE64.encode(&shown.bytes)),
    }
    serde_json::to_value(answer).map_err(|e| e.to_string())
}

/// Describes a file.
fn info(source: &Source) -> Result<Value, String> {
    let header = source.header(0)?;
    let (width, height) = header.upright_size();
    let mut about = json!({
        "format": source.kind.name(),
        "media_type": source.kind.media_type(),
        "width": width,
        "height": height,
        "bytes": source.bytes().len(),
        "bits": header.depth(),
        "transparency": header.has_alpha,
    });
    if source.count() > 1 {
        about["pictures"] = json!(source.count());
    }
    if source.is_cut() {
        about["cut"] = json!(true);
    }
    let entries = metadata::entries(source, header.exif.as_deref());
    if !entries.is_empty() {
        let fields = entries.into_iter().map(|entry| (entry.name, Value::from(entry.value)));
        about["metadata"] = Value::Object(fields.collect());
    }
    Ok(about)
}

/// Writes the picture in another form.
fn convert(source: &Source, call: &Call, out: Option<(String, String)>) -> Result<Value, String> {
    let (name, path) = out.ok_or_else(|| "convert needs out, the file to be written".to_owned())?;
    let ending = Path::new(&name).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let ending = ending.unwrap_or_default();
    let kind = Kind::from_ending(&ending)
        .ok_or_else(|| format!("{name} cannot be written: its ending must be that of {KNOWN}"))?;
    let mut operations = vec![Operation::AutoOrient];
    if !call.keep_metadata {
        operations.push(Operation::Strip);
    }
    for (option, value) in [("-crop", &call.crop), ("-resize", &call.resize)] {
        if let Some(value) = value {
            operations.push(read_operation(option, Some(value)).map_err(|_| {
                format!("invalid {}: write WIDTHxHEIGHT, for crop with +LEFT+TOP", option.trim_start_matches('-'))
            })?);
        }
    }
    operations.extend(call.rotate.map(Operation::Rotate));
    operations.extend(call.flip.map(|flip| match flip {
        Flip::Horizontal => Operation::Flop,
        Flip::Vertical => Operation::Flip,
    }));
    if call.gray {
        operations.push(Operation::Tone(crate::tone::Tone::Gray));
    }
    let mut pictures = match call.page {
        Some(page) => vec![source.decode(page)?],
        None if kind.holds_several() => source.decode_all()?,
        None => vec![source.decode(0)?],
    };
    for picture in &mut pictures {
        for operation in &operations {
            operation.apply(picture, &Settings::default())?;
        }
    }
    let mut format = Format::new(kind);
    format.quality = call.quality;
    format.metadata = call.keep_metadata;
    format.repeat = source.repeat();
    format.ending = ending;
    let bytes = encode(&pictures, &format)?;
    write_file(&path, &bytes)?;
    let (width, height) = pictures[0].size();
    let mut answer = json!({
        "file": name,
        "media_type": kind.media_type(),
        "width": width,
        "height": height,
        "bytes": bytes.len(),
    });
    if pictures.len() > 1 {
        answer["pictures"] = json!(pictures.len());
    }
    Ok(answer)
}

/// `image look FILE [LONGEST]`: the same as the skill's, for a person who wants to see what a model sees.
pub fn look_at(words: &[String]) -> Result<String, String> {
    let [file, rest @ ..] = words else { return Err("the file is missing; use: image look FILE [PIXELS]".to_owned()) };
    let mut view = View::default();
    if let Some(longest) = rest.first() {
        view.longest = longest.parse().map_err(|_| format!("invalid number '{longest}'"))?;
    }
    let shown = look(&Source::open(file)?, &view).map_err(|e| format!("{file}: {e}"))?;
    let mut answer = Answer::new(&shown);
    answer.base64 = Some(BASE64.encode(&shown.bytes));
    serde_json::to_string(&answer).map(|text| text + "\n").map_err(|e| e.to_string())
}

/// `image info FILE`.
pub fn info_of(words: &[String]) -> Result<String, String> {
    let [file] = words else { return Err("one file is needed; use: image info FILE".to_owned()) };
    let about = info(&Source::open(file)?).map_err(|e| format!("{file}: {e}"))?;
    serde_json::to_string_pretty(&about).map(|text| text + "\n").map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use image::ImageFormat;

    fn workspace(name: &str) -> String {
        let path = std::env::temp_dir().join(format!("pictures-call-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("photo.jpg"), samples::jpeg_with_exif(&samples::photo(400, 300), 6)).unwrap();
        std::fs::write(path.join("moves.gif"), samples::gif(3)).unwrap();
        std::fs::write(path.join("text.png"), b"no picture").unwrap();
        path.to_string_lossy().into_owned()
    }

    fn ask(workspace: &str, args: Value) -> Result<Value, String> {
        let request = json!({"args": args, "session": "s", "workspace": workspace, "secrets": {}});
        answer(&request.to_string()).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_model_is_shown_a_picture() {
        let at = workspace("look");
        let shown = ask(&at, json!({"file": "photo.jpg", "do": "look", "longest": 200})).unwrap();
        assert_eq!((&shown["width"], &shown["height"]), (&json!(150), &json!(200)));
        assert_eq!(
            (&shown["source"]["width"], &shown["source"]["height"], &shown["source"]["format"]),
            (&json!(300), &json!(400), &json!("JPEG"))
        );
        let bytes = BASE64.decode(shown["base64"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(shown["media_type"], Kind::of(&bytes).unwrap().media_type());
        let part = ask(&at, json!({"file": "photo.jpg", "do": "look", "region": [0.5, 0.5, 0.5, 0.5]})).unwrap();
        assert_eq!(part["region"], json!([150, 200, 150, 200]));
        let written = ask(&at, json!({"file": "moves.gif", "do": "look", "page": 1, "out": "seen.png"})).unwrap();
        assert_eq!((&written["file"], &written["source"]["pictures"]), (&json!("seen.png"), &json!(3)));
        assert!(written.get("base64").is_none() && Path::new(&format!("{at}/seen.png")).exists());
        std::fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn a_picture_is_described_and_converted() {
        let at = workspace("convert");
        let about = ask(&at, json!({"file": "photo.jpg"})).unwrap();
        assert_eq!((&about["width"], &about["metadata"]["Model"]), (&json!(300), &json!("Camera 3")));
        let args = json!({"file": "photo.jpg", "do": "convert", "out": "small.png", "crop": "200x200+50+50",
            "resize": "100x100", "rotate": 90, "flip": "vertical", "gray": true, "quality": 80, "keep_metadata": false});
        let made = ask(&at, args).unwrap();
        assert_eq!((&made["width"], &made["media_type"]), (&json!(100), &json!("image/png")));
        let source = Source::new(std::fs::read(format!("{at}/small.png")).unwrap()).unwrap();
        assert!(source.header(0).unwrap().exif.is_none());
        let made = ask(&at, json!({"file": "moves.gif", "do": "convert", "out": "moves.tiff"})).unwrap();
        assert_eq!(made["pictures"], json!(3));
        std::fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn a_wrong_request_is_one_sentence() {
        let at = workspace("wrong");
        for args in [
            json!({}),
            json!({"file": "none.png"}),
            json!({"file": "text.png"}),
            json!({"file": "photo.jpg", "do": "dance"}),
            json!({"file": "photo.jpg", "colour": 1}),
            json!({"file": "photo.jpg", "do": "look", "region": [1]}),
            json!({"file": "photo.jpg", "do": "look", "page": 5}),
            json!({"file": "photo.jpg", "do": "convert"}),
            json!({"file": "photo.jpg", "do": "convert", "out": "a.heic"}),
            json!({"file": "photo.jpg", "do": "convert", "out": "a.png", "resize": "axb"}),
            json!({"file": "photo.jpg", "do": "convert", "out": "a.png", "rotate": 1e300}),
        ] {
            let answered = ask(&at, args.clone());
            assert!(
                answered.as_ref().is_err_and(|e| !e.contains('\n') && e.len() < 400) || args["rotate"].is_number(),
                "{args}: {answered:?}"
            );
        }
        assert!(answer("no JSON").is_err());
        std::fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn a_bomb_is_refused_before_memory_is_taken() {
        let mut jpeg = samples::encoded(&samples::photo(20, 10), ImageFormat::Jpeg);
        let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
        let mut gif = samples::gif(2);
        gif[6..10].copy_from_slice(&[0xff; 4]);
        let mut bmp = samples::encoded(&samples::photo(20, 10), ImageFormat::Bmp);
        bmp[18..26].copy_from_slice(&[0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]);
        let mut tiff = samples::tiff(&[(4, 4)]);
        for number in [0x100_u16, 0x101] {
            let directory = u32::from_le_bytes(*tiff[4..].first_chunk().unwrap()) as usize + 2;
            let mut entries = (0..).map(|at| directory + 12 * at);
            let entry = entries.find(|at| tiff[*at..].starts_with(&number.to_le_bytes())).unwrap();
            tiff[entry + 8..entry + 12].copy_from_slice(&60_000_u32.to_le_bytes());
        }
        for file in [jpeg, gif, bmp, tiff, b"P6\n60000 60000\n255\n".to_vec(), b"P5 4000000000 1 255 ".to_vec()] {
            let source = Source::new(file).unwrap();
            let said = look(&source, &View::default()).err().unwrap();
            assert!(said.contains("too large") || said.contains("Too large") || said.contains("MiB"), "{said}");
        }
    }

    /// Every file that is cut or changed anywhere is read or refused, and never ends the program.
    #[test]
    fn damaged_files_are_read_or_refused() {
        let photo = samples::photo(24, 17);
        let mut files = vec![samples::jpeg_with_exif(&photo, 3), samples::gif(2), samples::tiff(&[(9, 8), (7, 6)])];
        for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Bmp, ImageFormat::Pnm] {
            files.push(samples::encoded(&photo, format));
        }
        let mut seed = 1_u32;
        for file in files {
            for round in 0..400 {
                let mut bytes = file.clone();
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = seed as usize % bytes.len();
                match round % 3 {
                    0 => bytes.truncate(at),
                    1 => bytes[at] = (seed >> 24) as u8,
                    _ => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
                }
                let Ok(source) = Source::new(bytes) else { continue };
                let _ = info(&source);
                let _ = look(&source, &View::default());
                let _ = source.decode_all();
                let _ = crate::strip::strip(source.bytes(), source.kind, crate::strip::Part::Place);
            }
        }
    }
}
