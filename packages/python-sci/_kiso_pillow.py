# JPEG and WebP for Pillow, which has no libraries for them here: the command `convert` reads and writes them.
import io


def _convert(data, *words):
    import subprocess

    done = subprocess.run(["convert", *words], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def patch_jpeg(module):
    """Gives the plugin, which reads headers and metadata by itself, what decodes and encodes pixels."""
    Image, ImageFile = module.Image, module.ImageFile
    if hasattr(Image.core, "jpeg_decoder"):
        return

    class Decoder(ImageFile.PyDecoder):
        _pulls_fd = True

        def decode(self, buffer):
            # With `draft`, a smaller picture than that of the file is wanted.
            size = f"{self.state.xsize}x{self.state.ysize}!"
            data = self.fd.read()
            # The pixels begin at the first of these marks, and end at the other.
            if b"\xff\xd9" not in data[max(data.find(b"\xff\xda"), 0):] and not ImageFile.LOAD_TRUNCATED_IMAGES:
                raise OSError("image file is truncated")
            data = _convert(data, "-", "-resize", size, "pgm:-" if self.mode == "L" else "ppm:-")
            with Image.open(io.BytesIO(data)) as pixels:
                self.set_as_raw(pixels.convert(self.mode).tobytes())
            return -1, 0

    class Encoder(ImageFile.PyEncoder):
        _pushes_fd = True

        def encode(self, bufsize):
            quality, dpi, comment, extra, exif = self.args[1], self.args[7], *self.args[-3:]
            pixels = Image.Image()._new(self.im)
            plain = io.BytesIO()
            pixels.convert("L" if pixels.mode in ("1", "L") else "RGB").save(plain, "PPM")
            quality = str(quality if 0 < quality <= 100 else 75)
            density = ["-density", str(dpi[0])] if isinstance(dpi, (list, tuple)) and dpi[0] else []
            data = _convert(plain.getvalue(), "-", "-quality", quality, *density, "jpg:-")
            # Metadata follows the start, and the first segment where that says which version of the format it is.
            at = 4 + int.from_bytes(data[4:6], "big") if data[2:4] == b"\xff\xe0" else 2
            at = min(at, len(data))
            segments = extra or b""
            if comment:
                comment = comment.encode() if isinstance(comment, str) else comment
                segments += b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
            if exif:
                segments = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + segments
            data = data[:at] + segments + data[at:]
            return len(data), 1, data

    Image.register_decoder("jpeg", Decoder)
    Image.register_encoder("jpeg", Encoder)


def patch_webp(module):
    Image = module.Image
    if module.SUPPORTED:
        return

    def open_first(fp, filename=None):
        from PIL import PngImagePlugin

        image = PngImagePlugin.PngImageFile(io.BytesIO(_convert(fp.read(), "-[0]", "png:-")))
        image.format, image.format_description = "WEBP", "WebP image"
        return image

    def accept(prefix):
        return prefix[:4] == b"RIFF" and prefix[8:12] == b"WEBP"

    def save(im, fp, filename):
        if im.encoderinfo.get("append_images") or getattr(im, "n_frames", 1) > 1 and im.encoderinfo.get("save_all"):
            raise OSError("an animated WebP cannot be written here")
        if im.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            im = im.convert("RGB")
        plain = io.BytesIO()
        im.save(plain, "PNG")
        # Without loss, so there is no quality.
        fp.write(_convert(plain.getvalue(), "-", "webp:-"))

    Image.register_open("WEBP", open_first, accept)
    Image.register_save("WEBP", save)
    Image.register_save_all("WEBP", save)
    Image.register_extension("WEBP", ".webp")
    Image.register_mime("WEBP", "image/webp")
