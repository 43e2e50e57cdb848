//! Random programs: lines of somebody below the user and lines of the user, which share a few names.

use crate::load::Random;

/// A step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A line that has read the attacker's text, which is in `$1`.
    Attacker(String),
    /// A line of the user.
    User(String),
    /// The user undoes the step of this number.
    Undo(usize),
    Redo(usize),
}

/// The names in all lines.
pub(super) const NAMES: [&str; 10] = ["a", "b", "c.csv", "d", "d/x", "d/y", "e", "e/x", "l", "AGENTS.md"];

const DIRS: [&str; 3] = ["d", "e", "l"];

/// Changes of files. `W` is a placeholder for a word, `N` and `M` for names, `D` and `E` for directories, `K` for a small number.
const CHANGES: [&str; 74] = [
    "echo W > N",
    "echo W > N",
    "echo W >> N",
    ": > N",
    ": >> N",
    "touch N",
    "touch -d @K N",
    "touch -h -d @K N",
    "touch -d @K D",
    "chmod +x N",
    "chmod go-r N",
    "cp -p N M",
    "[ -x N ] && echo W > M",
    "rm -f N",
    "rm -rf D",
    "mkdir D",
    "mkdir -p D/W",
    "rmdir D",
    "ln N M",
    "ln -f N M",
    "ln -s N M",
    "ln -s D M",
    "ln -sf N M",
    "ln -sfn D E",
    "ln -s W M",
    "mv N M",
    "mv -n N M",
    "mv -T D E",
    "mv N D",
    "mv N D/W",
    "cp N M",
    "cp -f N M",
    "cp -a D E",
    "cp -r D/. E",
    "cp -P N M",
    "cp --remove-destination N M",
    "cat N > M",
    "x=$(cat < N); echo \"$x\" >> M",
    "x=$(<N); echo \"$x\" > M",
    "mapfile -t x < N; echo \"${x[0]}\" > M",
    "exec 3<>N; echo W >&3; exec 3>&-",
    "exec 3>>N; rm -f N; echo W >&3",
    "x=$(echo W; cat N | sort); echo \"$x\" | tee M > /dev/null",
    "sed -i 's/w/W/' N",
    "truncate -s K N",
    "truncate -c -s 0 N",
    "dd if=N of=M bs=3 count=1 2> /dev/null",
    "printf W | dd of=N conv=notrunc 2> /dev/null",
    "head -c 3 N > M",
    "sort -o N N",
    "install N M",
    "split -b 4 N D/W",
    "tar --mtime=@5 -cf b D; tar -xf b -C E",
    "tar -cf - D | tar -xf - -C E",
    "gzip -n -f N; gunzip -f N.gz",
    "zip -q -r a.zip D; unzip -q -o a.zip -d E",
    "find D -type f -exec rm {} +",
    "cd D && echo W > x",
    "cd D && mv x y",
    "js -e \"require('fs').appendFileSync('N', 'W')\"",
    "js -e \"require('fs').renameSync('N', 'M')\"",
    "[ -e N ] && echo W > M",
    "[ N -nt M ] && echo W > M",
    "curl -s http://box/p > N",
    "curl -s -o N http://box/p",
    "curl -s -d W http://box/p > N",
    "curl -s -T N http://box/p",
    "wget -q -O N http://box/p",
    "curl -s -o M -D N http://box/p",
    "curl -s -o M -c N http://box/p",
    "curl -s -o M http://box/W",
    "ls D > M",
    "wc -c < N > M",
    "for x in *; do echo $x >> M; done",
];

/// How an attacker's line uses the text.
const USES: [&str; 4] =
    ["C", "case $1 in pay*) C;; esac", "case $1 in wait) C;; esac", "[ ${#1} -gt 5 ] && { C; } || { O; }"];

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

/// A random change; an attacker's line also contains the attacker's words.
fn change(random: &mut Random, of_attacker: bool) -> String {
    let line = pick(random, &CHANGES);
    let mut filled = String::new();
    let mut before = ' ';
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        // A single letter is a placeholder; one in a word is not.
        let is_place =
            !before.is_alphanumeric() && letters.peek().is_none_or(|next| !next.is_alphanumeric() && *next != '_');
        before = letter;
        let words: &[&str] = if of_attacker { &["$1", "w", "$1", "x-$1"] } else { &["w", "v", "word"] };
        let more: &[&str] = if of_attacker { &["$1", "d/$1", "e/$1"] } else { &[] };
        match letter {
            'W' if is_place => filled.push_str(pick(random, words)),
            'N' | 'M' if is_place => {
                let names: Vec<&str> = NAMES.iter().chain(more).copied().collect();
                filled.push_str(pick(random, &names));
            }
            'D' | 'E' if is_place => filled.push_str(pick(random, &DIRS)),
            'K' if is_place => filled.push_str(if of_attacker { pick(random, &["${#1}", "7"]) } else { "9" }),
            letter => filled.push(letter),
        }
    }
    filled
}

fn attacker(random: &mut Random) -> String {
    let (use_, one, other) = (pick(random, &USES), change(random, true), change(random, true));
    use_.replace('C', &one).replacen('O', &other, 1)
}

/// A program: the user creates some files, then both work.
pub(super) fn program(random: &mut Random) -> Vec<Step> {
    let first = "mkdir d e; echo one > a; echo two,2 > c.csv; echo three > d/x; echo four > e/x; echo heed > AGENTS.md";
    let mut steps = vec![Step::User(first.to_owned())];
    for number in 1..random.below(7) + 4 {
        steps.push(match random.below(12) {
            0..=5 => Step::Attacker(attacker(random)),
            6..=9 => Step::User(change(random, false)),
            10 => Step::Undo(1 + random.below(number)),
            _ => Step::Redo(1 + random.below(number)),
        });
    }
    steps
}
