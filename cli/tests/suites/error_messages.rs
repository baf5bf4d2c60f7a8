//! Tests errors of a user: a typing error on the command line, an absent target, or a reader that
//! goes away. weft prints a helpful message, and exits with the documented exit code.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use weft_suites::store::Store;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_STORE").args(arguments).stdin(Stdio::null());
    command
}

fn weft(arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    (status.code().unwrap(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn capture() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-crc.pcap").display().to_string()
}

/// Writes a target file into `folder`. The file has this address and the lines `more`. Returns the
/// path of the file.
fn target(folder: &Path, address: &str, more: &str) -> String {
    let file = folder.join("nic.toml");
    std::fs::write(&file, format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"{address}\"\n{more}")).unwrap();
    file.display().to_string()
}

#[test]
fn a_target_that_is_none_is_named_with_the_nearest() {
    let (code, text) = weft(&["test", "bulitin"]);
    assert!(code == 2 && text.contains("did you mean builtin?"), "{text}");
    let (code, text) = weft(&["test", env!("CARGO_MANIFEST_DIR")]);
    assert!(code == 2 && text.contains("is a directory"), "{text}");
    let (code, text) = weft(&["test", "builtin", "--deviate", "mpa.acepts-wrong-key"]);
    assert!(code == 2 && text.ends_with("did you mean mpa.accepts-wrong-key?\n"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = target(folder.path(), "192.0.2.17", "");
    let (code, text) = weft(&["test", &file]);
    assert!(code == 2 && text.starts_with(&format!("weft: {file}: address = \"192.0.2.17\"")), "{text}");
}

/// A password in the URL of a store would be visible in the history of the shell and in the list of
/// processes. So the help names the variable PGPASSWORD.
#[test]
fn help_of_a_store_names_pgpassword() {
    for command in ["test", "web", "diff"] {
        let (code, text) = weft(&[command, "--help"]);
        assert!(code == 0 && text.contains("--store") && text.contains("PGPASSWORD"), "{command}: {text}");
    }
}

#[test]
fn a_dashboard_names_the_port_that_is_in_use() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{port}");
    let out = folder.path().display().to_string();
    let (code, text) = weft(&["web", "--listen", &address, "--out", &out, "--target", "builtin"]);
    let expected = format!("weft: cannot listen on {address}: port {port} is in use; use port 0 for a free port\n");
    assert!(code == 2 && text.ends_with(&expected), "{text}");
}

#[test]
fn words_in_quotes_find_a_deviation() {
    let (code, text) = weft(&["deviations", "R bit"]);
    assert!(code == 0 && text.contains("mpa.reject-bit-moved"), "{text}");
    assert!(!text.contains("mpa.crc-flipped"), "{text}");
}

/// Exit code 4 does not always mean a fault of weft. A full disk also causes it.
#[test]
fn the_help_mentions_a_full_disk() {
    let (_, text) = weft(&["--help"]);
    assert!(text.contains("full disk") && !text.contains("a fault of weft itself"), "{text}");
}

#[test]
fn suites_and_stores_that_are_none_are_named() {
    let (code, text) = weft(&["test", "builtin", "--suites", "no/such"]);
    assert!(code == 2 && text.starts_with("weft: no/such: there is no such folder of scripts"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a store").join("results.sqlite");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "this is no database, despite its name; it is only text").unwrap();
    let out = file.parent().unwrap().display().to_string();
    for arguments in
        [&["test", "builtin", "mpa/7.1.1-key", "--out", &out][..], &["web", "--listen", "127.0.0.1:0", "--out", &out]]
    {
        let (code, text) = weft(arguments);
        let words = format!("weft: {} cannot be used as a results store: ", file.display());
        assert!(code == 2 && text.starts_with(&words), "{text}");
        assert_eq!(text.matches("not a database").count(), 1, "{text}");
    }
    // The error does not show the credentials of the URL.
    let server = "postgres://user:secret@nic.invalid/runs";
    let (code, text) = weft(&["test", "builtin", "mpa/7.1.1-key", "--out", &out, "--store", server]);
    assert!(
        code == 2 && text.starts_with("weft: nic.invalid/runs cannot be used") && !text.contains("secret"),
        "{text}"
    );
}

#[test]
fn a_mistake_in_a_target_file_does_not_show_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = target(folder.path(), "192.0.2.7:7174", "agent_tokn = \"a-secret-of-ours\"");
    for arguments in [&["test", &file][..], &["target", "check", &file]] {
        let (code, text) = weft(arguments);
        assert!(code == 2 && text.contains("unknown field `agent_tokn`") && text.contains(": line "), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn tokens_that_everybody_can_read_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let file = path.to_str().unwrap();
    // The file contains no tokens, so the server stops after it has printed the warning.
    std::fs::write(&path, "no tokens\n").unwrap();
    let warning = format!("weft: {file}: every user of this machine can read the tokens; run chmod 600 {file}\n");
    for (mode, warned) in [(0o644, true), (0o640, false), (0o600, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let out = folder.path().join("out");
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("results.sqlite"), "").unwrap();
        let (code, text) = weft(&["web", "--out", out.to_str().unwrap(), "--token-file", file]);
        assert_eq!((code, text.contains(&warning)), (2, warned), "{mode:o}: {text}");
    }
}

#[test]
fn a_target_that_is_not_there_is_unreachable() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    // RFC 6761 section 6.4: a name that ends with `.invalid` never resolves.
    let file = target(folder.path(), "nic.invalid:7174", "");
    let headline = "target is down: nic.invalid:7174 cannot be resolved: ";
    let (code, text) = weft(&["target", "check", &file]);
    assert!(code == 3 && text.contains(&format!("\nweft: {headline}")), "{text}");
    let (code, text) = weft(&["test", &file, "mpa/7.1.1-key", "--out", &out]);
    assert!(code == 3 && text.starts_with(headline), "{text}");
    assert!(text.contains(&format!("\nexit code 3: {headline}")), "{text}");
    // The listener is closed at once, so this address refuses connections.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = target(folder.path(), &address.to_string(), "");
    let (code, text) = weft(&["test", &file, "mpa/7.1.1-key", "--out", &out]);
    let headline = format!("target is down: {address} refused the connection\n");
    assert!(code == 3 && text.starts_with(&headline), "{text}");
    assert_eq!(text.matches(&headline).count(), 1, "{text}");
    let junit = std::fs::read_to_string(folder.path().join("out/junit.xml")).unwrap();
    assert_eq!((junit.matches("<error ").count(), junit.matches("<skipped ").count()), (1, 15), "{junit}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    let body = page.split_once("</h1>\n").unwrap().1;
    assert!(body.starts_with(&format!("<p class=\"line inconclusive\">{}. ", headline.trim())), "{body}");
    let once = format!(
        "inconclusive, 15 cases: The first case found that the target is unreachable: cannot connect to {address}"
    );
    assert!(text.contains(&once), "{text}");
}

#[test]
fn a_case_that_does_not_apply_is_reported_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let (code, text) = weft(&["test", "builtin-initiator", "mpa/7.1.1-key", "--out", &out]);
    let why = "not-applicable, 16 cases: The target's role is initiator, but the case judges only targets with the role responder.";
    assert!(code == 2 && text.contains(why), "{text}");
}

#[test]
fn a_selection_may_follow_a_target_in_a_list() {
    let listed = weft(&["test", "--list", "mpa/7.1.1-key"]);
    assert!(listed.0 == 0 && listed.1.contains("MPA-7.1.1-2"), "{}", listed.1);
    assert_eq!(weft(&["test", "builtin", "mpa/7.1.1-key", "--list"]), listed);
    let (code, text) = weft(&["suite", "list", "builtin", "mpa/7.1.1-key"]);
    assert_eq!((code, &*text), (2, "weft: builtin is a target; this command takes no target, so omit it\n"));
}

#[test]
fn nothing_is_no_number_of_runs_or_frames() {
    assert_eq!(weft(&["test", "builtin", "--repeat", "0"]).0, 2);
    assert_eq!(weft(&["dissect", "-c", "0", &capture()]).0, 2);
}

/// The reader of the output goes away, as in `weft test ... | head -1`. The run nevertheless
/// continues to its end and writes its reports.
#[test]
fn a_reader_that_goes_away_costs_no_results() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let mut run = command(&["test", "builtin", "mpa/7.1.1-key", "--out", &out]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(run.stdout.take());
    let mut text = String::new();
    run.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((run.wait().unwrap().code(), text.as_str()), (Some(0), ""));
    assert!(folder.path().join("out/report.html").is_file());
}

#[test]
fn options_of_tshark_get_a_hint() {
    let capture = capture();
    for (arguments, way) in [
        (&["lint", &capture, "-z", "conv,tcp"][..], "`weft stats FILE`"),
        (&["explain", "-i", "eth0"], "weft dissect -i IF"),
        (&["lint", &capture, "-d", "tcp.port==7174,mpa"], "on any port"),
        (&["lint", &capture, "-N", "n"], "weft dissect -N n -H HOSTS FILE"),
        (&["-r", &capture], "weft dissect -r FILE"),
        (&[&capture], "to read a capture: weft dissect "),
    ] {
        let (code, text) = weft(arguments);
        assert!(code == 2 && text.contains(way), "{arguments:?}: {text}");
        // clap's tip and its usage would hide the hint.
        assert!(text.starts_with("error: ") && !text.contains("tip:") && !text.contains("Usage:"), "{text}");
    }
    assert_eq!(weft(&["dissect", "-n", "-r", &capture]), weft(&["dissect", &capture]));
}

/// The first attempt of many users is `weft test HOST:PORT`. The message has a complete target file.
#[test]
fn an_address_gets_a_target_file_to_copy() {
    for (arguments, begin, address) in [
        (&["test", "192.0.2.7:7174"][..], "weft: 192.0.2.7:7174 is an address, but weft ", "192.0.2.7:7174"),
        (&["test", "--target", "192.0.2.7:7174"], "error: unexpected argument '--target' found\nweft: ", "HOST:PORT"),
        (&["test", "--port", "7174"], "error: unexpected argument '--port' found\nweft: ", "HOST:PORT"),
    ] {
        let (code, text) = weft(arguments);
        assert!(code == 2 && text.starts_with(begin), "{text}");
        let address = format!("\naddress = \"{address}\"\n");
        for line in [&*address, "\nservice = \"echo\" ", "weft target add ", "weft target check nic.toml\n"] {
            assert!(text.contains(line), "{arguments:?}: {line}: {text}");
        }
    }
}

#[test]
fn a_folder_that_is_none_is_named() {
    let (code, text) = weft(&["ladder", &capture(), "-o", "/no/such/folder/ladder.svg"]);
    let expected = "weft: /no/such/folder/ladder.svg: cannot be written: its folder does not exist\n";
    assert_eq!((code, text.as_str()), (2, expected));
    let (code, text) = weft(&["test", "builtin", "--out", "/dev/null"]);
    assert_eq!((code, text.as_str()), (2, "weft: /dev/null: is not a folder; use another name\n"));
    let below = "weft: /dev/null/x: has a parent that is not a folder; use another path\n";
    for arguments in [&["test", "builtin"][..], &["suite", "prove"], &["test", "builtin", "--repeat", "2"], &["demo"]] {
        let (code, text) = weft(&[arguments, &["--out", "/dev/null/x"]].concat());
        assert_eq!((code, text.as_str()), (2, below), "{arguments:?}");
    }
}

#[test]
fn a_requirement_is_cited_by_its_specification() {
    let (code, text) = weft(&["requirements", "MPA-7.1.1-2"]);
    assert!(code == 0 && text.starts_with("MPA-7.1.1-2  MUST  (RFC 5044 section 7.1.1, binds: Responder)\n"), "{text}");
}

#[test]
fn deviations_are_looked_up_by_word() {
    let (code, text) = weft(&["deviations", "MPA-7.1.1-2,", "key"]);
    assert!(
        code == 0 && text.lines().all(|line| line.contains("MPA-7.1.1-2,")) && text.contains("mpa.accepts-wrong-key")
    );
    assert_eq!(weft(&["deviations", "no-such-word"]).0, 2);
}

/// A hostile text. If weft printed it unchanged, it would clear the terminal, set the title of the
/// terminal, and reverse the direction of later text.
const HOSTILE: &str = "before\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}after";
const SHOWN: &str = "before\\x1b[2J\\x1b]0;title\\x07\\u{202e}after";

#[track_caller]
fn is_harmless(text: &str) {
    assert!(text.contains(SHOWN), "{text}");
    let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
    assert!(!text.contains(hidden), "{text:?}");
}

/// Changes the JSON document in a file.
fn edit(file: &Path, change: impl Fn(&mut serde_json::Value)) {
    let mut document = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(file, serde_json::to_vec(&document).unwrap()).unwrap();
}

fn make_hostile(result: &mut serde_json::Value) {
    for field in ["explanation", "actual"] {
        result[field] = HOSTILE.into();
    }
}

/// Reports and evidence can come from other hosts. So weft must not print their texts without a
/// change.
#[test]
fn control_characters_of_other_reports_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let case = "mpa/7.1.1-key/wrong-octet[octet=3]";
    let place = out.display().to_string();
    let (code, text) =
        weft(&["test", "builtin", case, "--deviate", "mpa.accepts-wrong-key", "--seed", "1", "--out", &place]);
    assert_eq!(code, 1, "{text}");

    let report = out.join("report.json");
    let other = folder.path().join("other.json");
    std::fs::copy(&report, &other).unwrap();
    edit(&other, |report| {
        report["run"]["target"]["name"] = HOSTILE.into();
        make_hostile(&mut report["results"][0]);
        report["results"][0]["verdict"] = "inconclusive".into();
    });
    for files in [[&report, &other], [&other, &report]] {
        let [before, after] = files.map(|file| file.display().to_string());
        let (_, text) = weft(&["diff", &before, &after]);
        is_harmless(&text);
    }

    // Without the store, weft reads the results from the evidence in the folder.
    for name in ["results.sqlite", "results.sqlite-wal", "results.sqlite-shm", "report.json"] {
        let _ = std::fs::remove_file(out.join(name));
    }
    edit(&out.join("cases/mpa/7.1.1-key/wrong-octet/octet=3/transcript.json"), make_hostile);
    let (code, text) = weft(&["report", &place]);
    assert_eq!(code, 1, "{text}");
    is_harmless(&text);
    for name in ["junit.xml", "report.tap", "summary.md", "report.html"] {
        let text = std::fs::read_to_string(out.join(name)).unwrap();
        assert!(text.contains("before") && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{name}");
    }
}

/// An agent sends the name of its device and the reason of a failure, and weft stores these texts.
/// A store can also come from another host. weft must not print a line feed in such a text, because
/// the new line could look like a result.
#[test]
fn control_characters_of_a_store_are_shown_in_the_history() {
    let folder = tempfile::tempdir().unwrap();
    let (place, case) = (folder.path().display().to_string(), "mpa/7.1.1-key/wrong-octet[octet=3]");
    let (code, text) = weft(&["test", "builtin", case, "--out", &place]);
    assert_eq!(code, 0, "{text}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&folder.path().join("results.sqlite")).await.unwrap();
        let run = store.runs(1).await.unwrap().remove(0).info.id;
        let mut report = store.report(&run).await.unwrap().unwrap();
        report.run.id = format!("{HOSTILE}\nforged\trun");
        let planned: Vec<_> = report.results.iter().map(|result| result.key.clone()).collect();
        store.begin(&report.run, &report.cases, &planned).await.unwrap();
        store.finish_case(&report.run.id, &report.results[0]).await.unwrap();
        store.close().await;
    });
    let (code, text) = weft(&["suite", "history", "builtin", case, "--out", &place]);
    assert_eq!(code, 0, "{text}");
    is_harmless(&text);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], format!("{SHOWN}\\x0aforged\\x09run pass           {case}"));
}

/// A suite can come from another host.
#[test]
fn control_characters_of_a_suite_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("mpa")).unwrap();
    let script = format!(
        "case {{ id = 'mpa/x/one', version = 1, title = 'A {HOSTILE}',\n  requirements = {{ 'MPA-7.1.1-2' }}, \
         roles = {{ 'responder' }},\n  run = function(t, p)\n    -- {HOSTILE}\n  end,\n}}\n"
    );
    std::fs::write(folder.path().join("mpa/x.lua"), script).unwrap();
    let suites = folder.path().display().to_string();
    let show = ["suite", "show", "mpa/x/one", "--suites", &suites];
    for arguments in [&["suite", "list", "--suites", &suites][..], &show] {
        let (code, text) = weft(arguments);
        assert_eq!(code, 0, "{text}");
        is_harmless(&text);
    }
}

#[test]
fn control_characters_of_an_agent_are_shown() {
    use std::io::{BufRead, BufReader, Write};
    let agent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = agent.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = agent.accept() {
            for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                let request: serde_json::Value = serde_json::from_str(&line).unwrap();
                let hello = serde_json::json!({"hello": {"version": 1, "agent": HOSTILE}});
                let mut answer = match request["do"].get("hello") {
                    Some(_) => serde_json::json!({"done": hello}),
                    None => serde_json::json!({"failed": {"what": HOSTILE}}),
                };
                answer["id"] = request["id"].clone();
                let reply = serde_json::json!({"at": 1, "answer": answer});
                if stream.write_all(format!("{reply}\n").as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    let (nobody, folder) = (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), tempfile::tempdir().unwrap());
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let file = target(folder.path(), &address, &format!("agent = \"{at}\"\ntime_scale = 0.1"));
    let (code, text) = weft(&["target", "check", &file]);
    assert_eq!(code, 3, "{text}");
    is_harmless(&text);
}
