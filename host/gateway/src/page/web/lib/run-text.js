// Text that a program wrote, made safe to look at: what steers a terminal goes, and what cannot be seen is shown.

/** Sequences that colour, move the cursor or set titles: CSI, OSC and the short ones. */
const SEQUENCE = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d(?=\d))[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g;

/** Control characters but tab and line feed, and those that turn the direction of text around. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function plain(text) {
  return text
    .replace(SEQUENCE, '')
    .replace(/\r\n/g, '\n')
    // A line that was written over, as bars of progress are, is what it was in the end.
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\r/g, '')
    .replace(UNSEEN, (character) => `⟦U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`);
}
