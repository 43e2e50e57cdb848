// Makes the output of programs safe to display: removes terminal control sequences, and shows invisible characters.

/** Sequences that colour, move the cursor or set titles: CSI, OSC and short ones. */
const SEQUENCE = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d(?=\d))[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g;

/** Control characters except tab and line feed, and characters that change the direction of text. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function plain(text) {
  return text
    .replace(SEQUENCE, '')
    .replace(/\r\n/g, '\n')
    // For a line that was overwritten, such as a progress bar, only the final text counts.
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\r/g, '')
    .replace(UNSEEN, (character) => `⟦U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`);
}
