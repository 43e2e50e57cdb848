//! Files that a command line can reach: its workspace and the mounts, whatever symbolic links point to.

use super::*;

#[test]
fn nothing_outside_of_the_workspace_can_be_reached() {
    let home = small();
    let secret = "TOP-SECRET-OF-THE-HOST";
    std::fs::write(home.path().join("secret.txt"), secret).unwrap();
    for line in [
        "cat ../../../secret.txt",
        "cat ../../store.db",
        "cat /work/../../../secret.txt",
        "cat < ../../../secret.txt",
        "cat /etc/passwd",
        "cat < /etc/passwd",
        "ln -s / x; cat x/etc/passwd",
        "ln -s ../../../secret.txt s; cat s",
        "ln -s ../../../secret.txt t; cat < t",
        "ln -s ../.. up; ls up/..",
        "cp ../../store.db .",
        "mv kept.txt ../../moved",
        "echo x > ../escaped",
        "cd ..; cat ../../secret.txt",
        "tar cf a.tar ../../../secret.txt",
        "find / -name secret.txt | grep .",
        "cat /proc/self/environ",
        "exec 3<>/dev/tcp/127.0.0.1/22",
        ". ../../../secret.txt",
    ] {
        let ran = home.shell(line);
        assert_ne!(ran.code, 0, "{line}: {ran:?}");
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{line}: {ran:?}");
        assert!(!ran.stdout.contains("root:"), "{line}: {ran:?}");
        assert!(!ran.stderr.is_empty() || line.contains("grep"), "{line} says nothing");
    }
    let ran = home.shell("cd /; ls; ls -R; pwd");
    assert!(!ran.stdout.contains("secret.txt") && !ran.stdout.contains("etc"), "{ran:?}");
    assert!(ran.stdout.starts_with("shared\ntmp\nwork\n") && ran.stdout.ends_with("/\n"), "{ran:?}");
    assert!(!home.path().join("sessions/default/escaped").exists());
    intact(&home);
}

/// A link that changes between check and use. No guest can create a link to the outside, so the test swaps it from there.
#[test]
fn a_link_that_is_swapped_leads_nowhere() {
    let home = small();
    std::fs::write(home.path().join("secret.txt"), "TOP-SECRET-OF-THE-HOST").unwrap();
    home.shell("mkdir d; echo inner > d/secret.txt").ok();
    let work = home.work("default");
    let (over, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let swapping = std::thread::spawn({
        let (over, swaps) = (over.clone(), swaps.clone());
        move || {
            while !over.load(Relaxed) {
                for target in ["../../..", "d"] {
                    let _ = std::fs::remove_file(work.join("l"));
                    std::os::unix::fs::symlink(target, work.join("l")).unwrap();
                    swaps.fetch_add(1, Relaxed);
                }
            }
        }
    });
    // On a busy machine, the link may hardly change during one line, so lines run until it has changed often enough.
    let mut ran = String::new();
    while swaps.load(Relaxed) <= 40 && !swapping.is_finished() {
        ran += &home.shell("for i in $(seq 40); do cat l/secret.txt < l/secret.txt; done 2>&1; true").stdout;
    }
    over.store(true, Relaxed);
    swapping.join().unwrap();
    assert!(!ran.contains("TOP-SECRET"), "{ran}");
    intact(&home);
}

/// Programs of this machine follow links anywhere, so no link that leads out of the workspace is kept.
#[test]
fn no_link_to_the_outside_is_left_in_a_workspace() {
    let home = Home::new();
    home.shell("echo kept > kept.txt").ok();
    home.shell("mkdir -p a/b; echo x > x; ln -s ../../x a/b/fine; cat a/b/fine; mv a/b/fine a/b/still; rm a/b/still")
        .ok();
    for line in [
        "ln -s ../../../key report.txt",
        "ln -s /etc/passwd report.txt",
        "ln -s a/../../.. report.txt",
        "ln -s ../../../.. a/b/report.txt",
        "ln -s ../.. pub/report.txt",
        "ln -s ../../x a/b/l && mv a/b/l report.txt",
        "ln -sf ../../x a/b/l && ln a/b/l report.txt",
        "ln -sf ../../x a/b/l && mv a/b report",
        "ln -s a/b short; ln -s ../../.. short/report.txt",
        "cd /tmp && ln -s ../../key k && mv k /work/report.txt",
        "cd /tmp && mkdir -p d/e && ln -s ../../key d/e/k && mv d/e /work/report",
        "rm -rf pub; ln -s ../.. pub",
    ] {
        let ran = home.shell(line);
        assert_ne!(ran.code, 0, "{line}: {ran:?}");
        assert!(!ran.stderr.is_empty(), "{line} says nothing");
    }
    let work = home.work("default");
    let mut pending = vec![work.clone()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_symlink() {
                let leads_to = entry.path().parent().unwrap().join(std::fs::read_link(entry.path()).unwrap());
                let leads_to = leads_to.canonicalize().unwrap_or_else(|_| work.clone());
                assert!(leads_to.starts_with(work.canonicalize().unwrap()), "{entry:?} leads to {leads_to:?}");
            }
        }
    }
    intact(&home);
}
