//! Command lines as people and models type them, on files in a directory of their own.

use super::run;
use crate::samples;
use crate::source::Source;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use std::path::{Path, PathBuf};

/// A directory that goes when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pictures-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let new = Self(path);
        new.put("photo.png", &samples::encoded(&samples::photo(40, 30), ImageFormat::Png));
        new.put("photo.jpg", &samples::jpeg_with_exif(&samples::photo(40, 30), 6));
        new.put("moves.gif", &samples::gif(3));
        new.put("page.png", &samples::encoded(&samples::page(100, 80), ImageFormat::Png));
        let logo = RgbaImage::from_fn(20, 20, |x, _| if x < 10 { Rgba([255, 0, 0, 255]) } else { Rgba([0; 4]) });
        new.put("logo.png", &samples::encoded(&DynamicImage::ImageRgba8(logo), ImageFormat::Png));
        new
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    /// Runs a line whose words with a dot or a slash are files of the directory.
    fn code(&self, line: &str) -> i32 {
        let words = line.split(' ').enumerate().map(|(at, word)| {
            let is_file = at > 0 && word.contains('.') && !word.starts_with(['-', '+']) && !word.contains("xc:");
            let is_file = is_file && word.parse::<f64>().is_err();
            match word.split_once(':') {
                _ if word == "small" => self.0.join(word).display().to_string(),
                _ if !is_file => word.to_owned(),
                Some((prefix, name)) => format!("{prefix}:{}", self.0.join(name).display()),
                None => self.0.join(word).display().to_string(),
            }
        });
        run(&words.collect::<Vec<_>>())
    }

    #[track_caller]
    fn done(&self, line: &str) {
        assert_eq!(self.code(line), 0, "{line}");
    }

    #[track_caller]
    fn refused(&self, line: &str) {
        assert_eq!(self.code(line), 1, "{line}");
    }

    fn source(&self, name: &str) -> Source {
        Source::new(std::fs::read(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))).unwrap()
    }

    fn picture(&self, name: &str) -> DynamicImage {
        self.source(name).decode(0).unwrap().pixels
    }

    #[track_caller]
    fn size(&self, name: &str) -> (u32, u32) {
        let picture = self.picture(name);
        (picture.width(), picture.height())
    }

    fn pixel(&self, name: &str, x: u32, y: u32) -> [u8; 4] {
        self.picture(name).to_rgba8().get_pixel(x, y).0
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sizes_are_as_asked_for() {
    let dir = Directory::new("sizes");
    for (options, size) in [
        ("-resize 20x20", (20, 15)),
        ("-resize 20x20!", (20, 20)),
        ("-resize 20x20^", (27, 20)),
        ("-resize 50%", (20, 15)),
        ("-resize 400x400>", (40, 30)),
        ("-thumbnail x15", (20, 15)),
        ("-scale 10x10!", (10, 10)),
        ("-sample 200%", (80, 60)),
        ("-resize 20x20^ -gravity center -extent 20x20", (20, 20)),
        ("-resize 20x20 -background black -gravity center -extent 20x20", (20, 20)),
        ("-crop 10x12+5+5 +repage", (10, 12)),
        ("-gravity SouthEast -crop 10x10+0+0", (10, 10)),
        ("-crop 100x100+30+20", (10, 10)),
        ("-shave 5x5", (30, 20)),
        ("-bordercolor red -border 5x2", (50, 34)),
        ("-rotate 90", (30, 40)),
        ("-rotate -90", (30, 40)),
        ("-rotate 180", (40, 30)),
        ("-rotate 45", (49, 49)),
        ("-flip -flop -transpose", (30, 40)),
        ("-strip -quality 80 -interlace Plane -sampling-factor 4:2:0", (40, 30)),
        ("-colorspace Gray -negate -normalize -brightness-contrast 10x20", (40, 30)),
        ("-modulate 110,80,100 -gamma 1.2 -level 5%,95% -posterize 4", (40, 30)),
        ("-sepia-tone 80% -blur 0x1 -sharpen 0x1", (40, 30)),
        ("-auto-level -contrast-stretch 2%x1% -grayscale Rec709Luma", (40, 30)),
        ("-monochrome", (40, 30)),
        ("-threshold 50%", (40, 30)),
        ("-colors 8", (40, 30)),
    ] {
        dir.done(&format!("convert photo.png {options} out.png"));
        assert_eq!(dir.size("out.png"), size, "{options}");
    }
    // An option before the picture is for it, too.
    dir.done("magick -resize 50% photo.png out.jpg");
    assert_eq!(dir.size("out.jpg"), (20, 15));
}

#[test]
fn what_is_turned_and_cut_is_where_it_should_be() {
    let dir = Directory::new("turned");
    let corner = RgbImage::from_fn(3, 2, |x, y| if (x, y) == (0, 0) { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) });
    dir.put("corner.png", &samples::encoded(&DynamicImage::ImageRgb8(corner), ImageFormat::Png));
    for (options, x, y) in [
        ("-rotate 90", 1, 0),
        ("-rotate 180", 2, 1),
        ("-rotate 270", 0, 2),
        ("-flip", 0, 1),
        ("-flop", 2, 0),
        ("-transpose", 0, 0),
        ("-transverse", 1, 2),
        ("-bordercolor blue -border 1", 1, 1),
        ("-background blue -extent 5x5", 0, 0),
        ("-background blue -gravity center -extent 5x4", 1, 1),
    ] {
        dir.done(&format!("convert corner.png {options} out.png"));
        assert_eq!(dir.pixel("out.png", x, y), [255, 0, 0, 255], "{options}");
    }
    dir.done("convert corner.png -rotate 90 -crop 1x1+1+0 out.png");
    assert_eq!((dir.size("out.png"), dir.pixel("out.png", 0, 0)), ((1, 1), [255, 0, 0, 255]));
    dir.done("convert out.png -bordercolor white -border 7x3 -trim +repage trimmed.png");
    assert_eq!(dir.size("trimmed.png"), (1, 1));
}

#[test]
fn levels_are_those_of_imagemagick() {
    let dir = Directory::new("levels");
    let steps = RgbImage::from_fn(3, 1, |x, _| Rgb([50 + 50 * x as u8, 100, 100]));
    dir.put("steps.png", &samples::encoded(&DynamicImage::ImageRgb8(steps), ImageFormat::Png));
    for (options, first, last) in [
        ("-auto-level", [0, 128, 128], [255, 128, 128]),
        ("-negate", [205, 155, 155], [105, 155, 155]),
        ("-threshold 39%", [0, 0, 0], [255, 255, 255]),
        ("-gamma 2", [113, 160, 160], [196, 160, 160]),
        ("-level 20%,80%", [0, 82, 82], [165, 82, 82]),
        ("-brightness-contrast 20x0", [101, 151, 151], [201, 151, 151]),
        ("-modulate 100,0", [75, 75, 75], [125, 125, 125]),
        ("-posterize 2", [0, 0, 0], [255, 0, 0]),
    ] {
        dir.done(&format!("convert steps.png {options} out.png"));
        let found = (dir.pixel("out.png", 0, 0), dir.pixel("out.png", 2, 0));
        let wanted = ([first[0], first[1], first[2], 255], [last[0], last[1], last[2], 255]);
        assert_eq!(found, wanted, "{options}");
    }
}

#[test]
fn transparency_is_kept_or_goes() {
    let dir = Directory::new("alpha");
    dir.done("convert logo.png out.jpg");
    assert!(dir.pixel("out.jpg", 18, 5)[0] > 240);
    dir.done("convert logo.png -background blue -flatten out.png");
    assert_eq!(dir.pixel("out.png", 18, 5), [0, 0, 255, 255]);
    dir.done("convert logo.png -background blue -alpha remove -alpha off out.png");
    assert_eq!(dir.pixel("out.png", 18, 5), [0, 0, 255, 255]);
    dir.done("convert logo.png -resize 50% out.webp");
    assert_eq!(dir.pixel("out.webp", 8, 5)[3], 0);
    dir.done("convert logo.png -alpha extract out.png");
    assert_eq!(dir.pixel("out.png", 18, 5), [0, 0, 0, 255]);
    dir.done("convert page.png -fuzz 5% -transparent white out.png");
    assert_eq!(dir.pixel("out.png", 99, 79)[3], 0);
    dir.done("convert page.png -fill red -opaque white out.png");
    assert_eq!(dir.pixel("out.png", 99, 79), [255, 0, 0, 255]);
}

#[test]
fn several_pictures_are_one_or_many() {
    let dir = Directory::new("several");
    dir.done("convert photo.png page.png -append out.png");
    assert_eq!(dir.size("out.png"), (100, 110));
    dir.done("convert photo.png page.png +append out.png");
    assert_eq!(dir.size("out.png"), (140, 80));
    dir.done("convert -delay 20 -loop 0 photo.png page.png logo.png out.gif");
    assert_eq!(dir.source("out.gif").count(), 3);
    assert_eq!(dir.source("out.gif").decode_all().unwrap()[0].delay_ms, 200);
    dir.done("convert photo.png page.png out.tiff");
    assert_eq!((dir.source("out.tiff").count(), dir.size("out.tiff")), (2, (40, 30)));
    dir.done("convert moves.gif frame-%02d.png");
    assert!(dir.has("frame-00.png") && dir.has("frame-02.png"));
    dir.done("convert moves.gif[1] one.png");
    assert!(dir.has("one.png") && !dir.has("one-0.png"));
    dir.done("convert moves.gif -resize 200% out.gif");
    assert_eq!((dir.source("out.gif").count(), dir.size("out.gif")), (3, (24, 16)));
    dir.done("convert photo.png logo.png -gravity SouthEast -geometry +2+2 -composite out.png");
    assert_eq!((dir.size("out.png"), dir.pixel("out.png", 19, 9)), ((40, 30), [255, 0, 0, 255]));
    dir.done("convert photo.png ( logo.png -resize 50% ) -gravity NorthWest -composite out.png");
    assert!(dir.pixel("out.png", 2, 2)[0] > 250 && dir.pixel("out.png", 2, 2)[1] < 5);
    dir.done("convert photo.png -crop 20x20 tile.png");
    assert!(dir.has("tile-3.png") && !dir.has("tile-4.png"));
    dir.done("convert photo.png ( +clone -flop ) +append out.png");
    assert_eq!(dir.size("out.png"), (80, 30));
    dir.done("convert -size 30x20 xc:red out.png");
    assert_eq!((dir.size("out.png"), dir.pixel("out.png", 0, 0)), ((30, 20), [255, 0, 0, 255]));
}

#[test]
fn metadata_stays_until_it_is_dropped() {
    let dir = Directory::new("metadata");
    let exif = |name: &str| dir.source(name).header(0).unwrap().exif.is_some();
    let orientation = |name: &str| dir.source(name).header(0).unwrap().orientation.to_exif();
    dir.done("convert photo.jpg -resize 50% out.jpg");
    assert!(exif("out.jpg") && orientation("out.jpg") == 6);
    dir.done("convert photo.jpg -auto-orient out.jpg");
    assert!(exif("out.jpg") && orientation("out.jpg") == 1 && dir.size("out.jpg") == (30, 40));
    dir.done("convert photo.jpg -auto-orient -strip out.jpg");
    assert!(!exif("out.jpg") && dir.size("out.jpg") == (30, 40));
    dir.done("exiftool -gps:all= photo.jpg");
    assert!(exif("photo.jpg") && dir.has("photo.jpg_original"));
    dir.done("exiftool -all= -overwrite_original photo.jpg");
    assert!(!exif("photo.jpg"));
    dir.done("exiftool -all= -o bare.jpg photo.jpg_original");
    assert!(!exif("bare.jpg"));
    dir.done("exiftool -j photo.jpg");
    dir.done("exiftool -s3 -Make -gps* -createdate photo.jpg_original");
}

#[test]
fn mogrify_changes_in_place_or_beside() {
    let dir = Directory::new("mogrify");
    dir.done("mogrify -resize 20x20 photo.png photo.jpg");
    assert_eq!((dir.size("photo.png"), dir.size("photo.jpg")), ((20, 15), (20, 15)));
    dir.done("mogrify -format webp page.png");
    assert!(dir.has("page.webp") && dir.size("page.png") == (100, 80));
    std::fs::create_dir(dir.0.join("small")).unwrap();
    dir.done("mogrify -path small -resize 10x page.png");
    dir.refused("mogrify -resize 10x none.png page.png");
    assert_eq!(dir.size("page.png"), (10, 8));
}

#[test]
fn montage_makes_a_sheet() {
    let dir = Directory::new("montage");
    dir.done("montage photo.png page.png logo.png -tile 2x -geometry 50x50+5+5 -background white out.png");
    assert_eq!(dir.size("out.png"), (120, 120));
    dir.done("montage photo.png page.png -geometry +0+0 out.png");
    assert_eq!(dir.size("out.png"), (200, 80));
    dir.done("montage photo.png page.png logo.png -tile 1x1 out.png");
    assert!(dir.has("out-2.png"));
    dir.done("montage photo.jpg photo.png -mode concatenate -tile x1 out.jpg");
    assert_eq!(dir.size("out.jpg"), (80, 40));
}

#[test]
fn a_wrong_line_is_refused_and_writes_nothing() {
    let dir = Directory::new("refused");
    dir.put("empty.png", b"");
    dir.put("text.jpg", b"hello");
    dir.put("half.png", &samples::encoded(&samples::photo(40, 30), ImageFormat::Png)[..200]);
    for line in [
        "convert",
        "convert photo.png",
        "convert photo.png -resize",
        "convert photo.png -resize 50% -strip",
        "convert photo.png -foo new.png",
        "convert photo.png -annotate +5+5 hello new.png",
        "convert photo.png -resize axb new.png",
        "convert photo.png -resize 900000x900000 new.png",
        "convert photo.png -gravity nowhere new.png",
        "convert photo.png -crop 10x10+90+90 new.png",
        "convert photo.png -background nocolour new.png",
        "convert photo.png ( new.png",
        "convert photo.png ) new.png",
        "convert photo.png new.pdf",
        "convert photo.png -depth 16 new.png",
        "convert photo.png -define foo:bar=1 new.png",
        "convert none.png new.png",
        "convert empty.png new.png",
        "convert text.jpg new.png",
        "convert half.png new.png",
        "convert moves.gif[9] new.png",
        "convert photo.png -composite new.png",
        "convert photo.png -sharpen 0x9999 new.png",
        "convert photo.png -crop 0.001x0.001 new.png",
        "identify -format %q photo.png",
        "identify none.png",
        "identify -foo photo.png",
        "mogrify -foo photo.png",
        "mogrify -resize 10x10",
        "montage -label x photo.png new.png",
        "exiftool",
        "exiftool -Artist=me photo.jpg",
        "exiftool -nosuchtag photo.jpg",
        "exiftool none.jpg",
        "ffmpeg photo.png",
    ] {
        dir.refused(line);
        assert!(!dir.has("new.png"), "{line}");
    }
    // A photo under a wrong name is what it is.
    dir.put("lies.png", &std::fs::read(dir.0.join("photo.jpg")).unwrap());
    dir.done("convert lies.png right.jpg");
    dir.done("mogrify -resize 50% lies.png");
    assert_eq!(dir.source("lies.png").kind.name(), "PNG");
}

#[test]
fn help_and_versions_are_there() {
    let dir = Directory::new("help");
    for command in ["image", "convert", "magick", "mogrify", "identify", "montage", "exiftool"] {
        dir.done(&format!("{command} --help"));
    }
    dir.done("convert -version");
    dir.done("image");
    dir.done("image identify photo.png");
    dir.done("image photo.png out.jpg");
    dir.done("image look photo.jpg");
    dir.done("image info photo.jpg");
    assert!(Path::new(&dir.0).join("out.jpg").exists());
}
