"""Makes the fonts beside it: subsets without hints, renamed, as zlib streams.

python make.py LIBERATION DEJAVU EMOJI

The arguments are directories: of LiberationSans-Regular.ttf and the others (Debian: fonts-liberation2), of DejaVuSans.ttf
(fonts-dejavu-core), and `files` of the npm package @fontsource/noto-emoji. fonttools and brotli come from PyPI.
"""

import glob
import io
import sys
import zlib

from fontTools import merge, subset
from fontTools.ttLib import TTFont

# Latin, Greek, Cyrillic, punctuation, currencies, common symbols.
TEXT = (
    "20-7e a0-24f 259 2b0-2dd 300-304 306-30c 323 326-328 370-3ff 400-4ff 1e80-1e85 1e9e 1ea0-1ef9 2000-206f 2070-209c 20a0-20bf "
    "2100-214f 2150-215f 2190-2195 2202 2206 220f 2211 2212 221a 221e 222b 2248 2260 2264 2265 25ca fb01 fb02 fffd"
)
MONO = TEXT + " 2500-257f 2580-259f 25a0-25ff"
SYMBOLS = "2190-21ff 2200-22ff 2300-23ff 2460-24ff 2500-257f 2580-259f 25a0-25ff 2600-26ff 2701-27bf 27e8 27e9 27f0-27ff fffd"
EMOJI = (
    "✅❌⭐🚀🎉🔥💡📌📝📦🔒🔓🔑🔧🔨🛠⚙📊📈📉📅🗓📧📞📍🏠👍👎👉👈👋🙏💪👏🙌❤💙💚💛💜🧡🖤💔💰💵💶💳🧾🛒🎯🏆🥇🥈🥉🔴🟠🟡🟢🔵🟣🟤⚪⚫🟩🟥🟨🟦⏰⏱⌛⏳"
    "🔍🔎🌍🌎🌐🌟✨💬🗑📁📂📄📃📋📎✏🖊🔗ℹ❓❗❔❕➕➖➡⬅⬆⬇🔄🔁💻🖥📱📷🎥🐛🧪🔬🤖🧠👤👥🌱🌿☀🌙⛅🌧❄🍎🍕🍺☕🎂🎁🎵🎨📚📖📰✈🚗🚲🏥🏫🏢🏦🏭🐍🦀"
    "🐧🐳🐙🐶🐱🌳🌸🍀⚡💥💯🆕🆗🚧🚨🛑⛔🚫⬛⬜◾🏁🏷📢🔔💾🗂🔌🔋🧩🧰🪄🎬🎮🏃👀✉📩📤📥🔐🛡🧹🩹♻👷🧵📐📏🗺🕒"
)


def ranges(text):
    found = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found |= set(range(int(first, 16), int(last or first, 16) + 1))
    return found


def cut(font, unicodes, kern):
    options = subset.Options()
    options.hinting = False
    options.layout_features = ["kern"] if kern else []
    options.legacy_kern = kern
    options.notdef_outline = True
    options.name_IDs = [0, 1, 2, 4, 6, 13, 14]
    options.drop_tables += ["DSIG", "FFTM", "GDEF", "GSUB", "STAT", "gasp", "vhea", "vmtx"] + ([] if kern else ["GPOS", "kern"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=unicodes)
    subsetter.subset(font)
    font.flavor = None
    return font


def save(font, file, family, style):
    """Under another name, as the licence of changed fonts asks."""
    for record in font["name"].names:
        text = {1: family, 2: style, 4: f"{family} {style}", 6: f"{family}-{style}".replace(" ", "")}.get(record.nameID)
        if text is not None:
            record.string = text
    # The same bytes each time.
    font["head"].created = font["head"].modified = 0
    font.recalcTimestamp = False
    out = io.BytesIO()
    font.save(out)
    with open(file + ".ttf.z", "wb") as target:
        target.write(zlib.compress(out.getvalue(), 9))


def emoji(directory):
    wanted = {ord(c) for c in EMOJI} | set(range(0x1F600, 0x1F645))
    parts = []
    for path in sorted(glob.glob(f"{directory}/noto-emoji-[0-9]*-400-normal.woff")):
        font = TTFont(path)
        here = set(font.getBestCmap()) & wanted
        if here:
            wanted -= here
            part = io.BytesIO()
            cut(font, here, False).save(part)
            part.seek(0)
            parts.append(part)
    return merge.Merger().merge(parts)


def main():
    liberation, dejavu, noto = sys.argv[1:]
    for family in ["Sans", "Serif"]:
        for style in ["Regular", "Bold", "Italic", "BoldItalic"]:
            font = TTFont(f"{liberation}/Liberation{family}-{style}.ttf")
            save(cut(font, ranges(TEXT), True), f"{family.lower()}-{style.lower()}", f"Kiso {family}", style)
    for style in ["Regular", "Bold"]:
        font = TTFont(f"{liberation}/LiberationMono-{style}.ttf")
        save(cut(font, ranges(MONO), False), f"mono-{style.lower()}", "Kiso Mono", style)
    save(cut(TTFont(f"{dejavu}/DejaVuSans.ttf"), ranges(SYMBOLS), False), "symbols", "Kiso Symbols", "Regular")
    save(emoji(noto), "emoji", "Kiso Emoji", "Regular")


main()
