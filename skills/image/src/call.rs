//! `image look` and `image info`: what a model is shown of a picture, and what is known of it, as JSON.

use crate::look::{Origin, Shown, View, look};
use crate::metadata;
use crate::source::Source;
use data_encoding::BASE64;
use serde::Serialize;
use serde_json::{Value, json};

/// A picture for a model.
#[derive(Serialize)]
struct Answer {
    media_type: &'static str,
    width: u32,
    height: u32,
    /// Left, top, width and height in the source.
    region: [u32; 4],
    source: Origin,
    base64: String,
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
            base64: BASE64.encode(&shown.bytes),
        }
    }
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

/// `image look FILE`, with a part of it, a page, and a size.
pub fn look_at(words: &[String]) -> Result<String, String> {
    let (mut view, mut file) = (View::default(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = |most: u64| {
            let value = words.next().and_then(|value| value.parse::<u64>().ok()).filter(|value| *value <= most);
            value.ok_or_else(|| format!("{word} needs a number of at most {most}"))
        };
        match word.as_str() {
            "--longest" => view.longest = u32::try_from(number(8_192)?.max(1)).unwrap_or(1),
            "--pixels" => view.pixels = number(32_000_000)?.max(1),
            "--max-bytes" => view.max_bytes = usize::try_from(number(20_000_000)?).unwrap_or(0),
            "--page" => view.page = usize::try_from(number(100_000)?).unwrap_or(0),
            "--as-shown" => view.as_shown = true,
            "--region" => {
                let given = words.next().map_or("", String::as_str);
                let parts: Vec<f64> = given.split(',').filter_map(|part| part.trim().parse().ok()).collect();
                let region = <[f64; 4]>::try_from(parts);
                view.region = Some(region.map_err(|_| "--region needs LEFT,TOP,WIDTH,HEIGHT".to_owned())?);
            }
            option if option.starts_with("--") => return Err(format!("option {option} is not known here")),
            name if file.is_none() => file = Some(name),
            name => return Err(format!("{name}: one file is shown at a time")),
        }
    }
    let file = file.ok_or("the file is missing; use: image look FILE [--region LEFT,TOP,WIDTH,HEIGHT]")?;
    let shown = look(&Source::open(file)?, &view).map_err(|e| format!("{file}: {e}"))?;
    serde_json::to_string(&Answer::new(&shown)).map(|text| text + "\n").map_err(|e| e.to_string())
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
    use crate::kind::Kind;
    use crate::samples;
    use image::ImageFormat;

    fn dir(name: &str) -> String {
        let path = std::env::temp_dir().join(format!("pictures-call-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("photo.jpg"), samples::jpeg_with_exif(&samples::photo(400, 300), 6)).unwrap();
        std::fs::write(path.join("moves.gif"), samples::gif(3)).unwrap();
        std::fs::write(path.join("text.png"), b"no picture").unwrap();
        path.to_string_lossy().into_owned()
    }

    fn words(at: &str, line: &str) -> Vec<String> {
        line.split(' ')
            .map(
                |word| if word.contains('.') && !word.contains(',') { format!("{at}/{word}") } else { word.to_owned() },
            )
            .collect()
    }

    #[test]
    fn a_model_is_shown_a_picture() {
        let at = dir("look");
        let look = |line: &str| serde_json::from_str::<Value>(&look_at(&words(&at, line)).unwrap()).unwrap();
        let shown = look("photo.jpg --longest 200");
        assert_eq!((&shown["width"], &shown["height"]), (&json!(150), &json!(200)));
        assert_eq!(
            (&shown["source"]["width"], &shown["source"]["height"], &shown["source"]["format"]),
            (&json!(300), &json!(400), &json!("JPEG"))
        );
        let bytes = BASE64.decode(shown["base64"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(shown["media_type"], Kind::detect(&bytes).unwrap().media_type());
        assert_eq!(look("--region 0.5,0.5,0.5,0.5 photo.jpg")["region"], json!([150, 200, 150, 200]));
        let small = look("photo.jpg --pixels 3000 --max-bytes 2000");
        assert_eq!((&small["width"], &small["height"]), (&json!(47), &json!(63)));
        let corner = look("--as-shown --longest 200 --region 75,100,75,100 photo.jpg");
        assert_eq!(corner["region"], json!([150, 200, 150, 200]), "as it is counted in a copy of 150 x 200");
        assert_eq!(look("moves.gif --page 1")["source"]["pictures"], json!(3));
        let about: Value = serde_json::from_str(&info_of(&words(&at, "photo.jpg")).unwrap()).unwrap();
        assert_eq!((&about["width"], &about["metadata"]["Model"]), (&json!(300), &json!("Camera 3")));
        std::fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn a_wrong_request_is_one_sentence() {
        let at = dir("wrong");
        for line in [
            "--longest 200",
            "none.png",
            "text.png",
            "photo.jpg --dance",
            "photo.jpg --region 1",
            "photo.jpg --page 5",
            "photo.jpg --longest x",
            "photo.jpg --max-bytes 10",
            "photo.jpg --pixels",
            "photo.jpg moves.gif",
        ] {
            let answered = look_at(&words(&at, line));
            assert!(answered.as_ref().is_err_and(|e| !e.contains('\n') && e.len() < 400), "{line}: {answered:?}");
        }
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
