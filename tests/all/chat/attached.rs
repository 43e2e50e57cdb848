//! Files named in a chat are attached to its messages.

use super::{Terminal, home, piped};
use crate::served::Served;

#[test]
fn files_are_attached_by_their_paths() {
    let (home, folder) = (home(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("my notes.txt"), "the key is under the mat\n").unwrap();
    std::fs::write(at("rent.txt"), "500 EUR\n").unwrap();
    // Larger than a line of the socket can be.
    std::fs::write(at("large.bin"), vec![7; 3 << 20]).unwrap();
    let served = Served::start(&home);
    let mut chat = Terminal::ready(&home, &["chat"], &[]);
    let dropped = at("my notes.txt").replace(' ', "\\ ");
    chat.keys(&format!("\x1b[200~{dropped}\x1b[201~"));
    chat.until_screen("the pasted path", |screen| screen.last().ends_with("notes.txt"));
    chat.keys("\r");
    chat.shows("attached my notes.txt (text/plain, 25 B); it goes with your next message");
    chat.keys("$ cat 'my notes.txt'\r");
    chat.shows("\nthe key is under the mat");
    chat.keys(&format!("'{}' {}\r", at("large.bin"), at("rent.txt")));
    chat.shows("attached large.bin (application/octet-stream, 3.1 MB); it goes with your next message");
    chat.shows("attached rent.txt (text/plain, 8 B); it goes with your next message");
    std::fs::write(at("rent.txt"), "600 EUR\n").unwrap();
    chat.keys(&format!("please read @{}.\r", at("rent.txt")));
    chat.until_screen("the file beside the other one", |screen| screen.text().contains("attached rent-"));
    chat.until_screen("the reply", |screen| screen.last() == "default>");
    chat.keys(&format!("what is in @{}/key\r", home.path().display()));
    chat.shows("it belongs to kiso's home. The message was not sent.");
    chat.keys("/none/such.pdf\r");
    chat.until_screen("the reply", |screen| screen.text().matches("was not understood").count() > 0);
    chat.keys("\x04");
    assert_eq!(chat.code(), 0, "{}", chat.screen.text());
    let work = home.work("default");
    assert_eq!(std::fs::read(work.join("large.bin")).unwrap(), vec![7; 3 << 20]);
    assert_eq!(std::fs::read_to_string(work.join("rent.txt")).unwrap(), "500 EUR\n");
    let messages = served.get("/sessions/default/messages");
    let texts: Vec<_> = messages["items"].as_array().unwrap().iter().filter(|m| m["role"] == "user").collect();
    let texts: Vec<_> = texts.iter().map(|message| message["text"].as_str().unwrap()).collect();
    let [cat, read, none] = texts[..] else { panic!("{texts:?}") };
    assert_eq!((cat, none), ("$ cat 'my notes.txt'", "/none/such.pdf"));
    let files = "\n\nFiles: my notes.txt, large.bin, rent.txt, rent-";
    assert!(read.starts_with("please read rent-") && read.contains(files) && read.ends_with(".txt"), "{read}");
    // Without a terminal, the lines may come from somebody else.
    piped(&home, &["chat"], &format!("@{}\n", at("rent.txt")));
    assert!(!served.get("/sessions/default/messages").to_string().contains("Files: rent.txt"));
    assert_eq!(served.terminate(), 0);
}
