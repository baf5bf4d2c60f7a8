//! Tests the reports. Each report shows the results of the run, and programs for its format can
//! read it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::common::{CASE, deviating, key_case, one_case, run};
use weft_suites::model::{Direction, DroppedTraffic, EventSink, RunReport, Summary};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, report};

/// Returns a report with every verdict. Its times and ids are constant, because snapshots contain
/// them.
async fn mixed() -> RunReport {
    let out = tempfile::tempdir().unwrap();
    let mut report = key_case(deviating(), out.path()).await;
    report.results.truncate(3);
    let mut passed = key_case(Target::builtin(), out.path()).await.results;
    report.results.push(passed.remove(3));
    let folder = one_case(out.path(), "t:good_exchange()\nt:conect()");
    let (other, _) =
        run(Target::builtin(), Suites::from_folder(&folder).unwrap(), Filter::everything(), out.path()).await;
    report.cases.extend(other.cases);
    report.results.extend(other.results);
    let body = "local c = t:connect() c:expect_close { within = 1 }";
    let folder = one_case(out.path(), body);
    let (other, _) =
        run(Target::builtin(), Suites::from_folder(&folder).unwrap(), Filter::everything(), out.path()).await;
    report.results.extend(other.results);
    let script = std::fs::read_to_string(folder.join("mpa/x.lua")).unwrap().replace("responder", "initiator");
    std::fs::write(folder.join("mpa/x.lua"), script).unwrap();
    let (other, _) =
        run(Target::builtin(), Suites::from_folder(&folder).unwrap(), Filter::everything(), out.path()).await;
    report.results.extend(other.results);
    for result in &mut report.results {
        result.duration_us = 1234;
    }
    report.run.id = "20260131T120000.000Z-0001".into();
    report.run.started_unix_ms = 1_769_860_800_000;
    let planned = report.results.len() as u64;
    report.summary = weft_suites::model::Summary::of(report.summary.status, planned, &report.results, 5678);
    report
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn terminal(report: &RunReport, colour: bool) -> String {
    let buffer = Buffer::default();
    replay(&report::Terminal::new(buffer.clone(), colour), report);
    let octets = buffer.0.lock().unwrap().clone();
    String::from_utf8(octets).unwrap()
}

/// Sends the events of a run to `terminal`.
fn replay(terminal: &impl EventSink, report: &RunReport) {
    use weft_suites::model::Event;
    let planned = report.results.iter().map(|result| result.key.clone()).collect();
    terminal.event(&Event::RunStarted { run: report.run.clone(), cases: report.cases.clone(), planned });
    for result in &report.results {
        terminal.event(&Event::CaseFinished { result: Box::new(result.clone()) });
    }
    terminal.event(&Event::RunFinished { summary: report.summary.clone() });
}

#[tokio::test]
async fn the_terminal_shows_failures_first() {
    let report = mixed().await;
    let text = terminal(&report, false);
    insta::assert_snapshot!("terminal", text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    assert!(!text.contains('\u{1b}'));
    let coloured = terminal(&report, true);
    assert!(coloured.contains("\u{1b}[1;31mfail"));
}

#[tokio::test]
async fn junit_is_valid_and_names_the_requirement() {
    let text = report::junit(&mixed().await).unwrap();
    assert!(text.contains("type=\"MPA-7.1.1-2\"") && text.contains("type=\"inconclusive\""), "{text}");
    assert_eq!(text.matches("<failure ").count(), 3);
    assert_eq!((text.matches("<error ").count(), text.matches("<skipped ").count()), (2, 1));
    assert!(text.contains(&format!("name=\"{CASE}[octet=3]\"")));
    insta::assert_snapshot!("junit", text);

    is_valid(&text);
}

/// The actual behaviour alone, such as a refused connection, does not explain the failure.
#[tokio::test]
async fn summaries_report_that_the_target_died() {
    let mut report = mixed().await;
    let died = "The target died during the case";
    report.results[0].explanation = format!("{died}. The good exchange failed.");
    let text = terminal(&report, false);
    assert!(text.contains(&format!("\n  {died}. The good exchange failed.\n  expected  ")), "{text}");
    let markdown = report::markdown(&report).unwrap();
    assert!(markdown.contains(&format!("| {died}: it sent an MPA Reply")), "{markdown}");
}

/// The evidence of two long cases lacks bytes. The missing bytes of the second case decided it.
#[tokio::test]
async fn reports_show_what_the_capture_lacks() {
    let out = tempfile::tempdir().unwrap();
    let mut report = key_case(deviating(), out.path()).await;
    let dropped = DroppedTraffic {
        connection: 2,
        direction: Direction::Received,
        events: 3,
        octets: 3072,
        crc32c: "0a1b2c3d".into(),
        first_ns: 1_500_000,
        last_ns: 2_000_000_000,
    };
    let datagrams =
        DroppedTraffic { connection: 0, direction: Direction::Sent, events: 1, octets: 1, ..dropped.clone() };
    report.results[0].evidence.dropped = vec![dropped.clone(), datagrams];
    report.results[1].evidence.dropped = vec![dropped];
    (report.results[1].decided_packet, report.results[1].decided_sequence) = (None, None);
    let lacks = "the capture lacks 3072 bytes that the target sent (3 events, CRC32c 0a1b2c3d) on connection 2, \
                 from 0.001500 s to 2.000000 s of the case";
    let decision = report.results[0].decision().unwrap();
    assert!(decision.starts_with("packet ") && decision.ends_with(" 1 to 20"), "{decision}");
    let nowhere = "no packet of the capture";

    let text = terminal(&report, false);
    let lacks_datagrams = "the capture lacks 1 byte that the tester sent (1 event, CRC32c 0a1b2c3d) in datagrams, ";
    for part in [lacks, lacks_datagrams, &format!("decided at {decision}\n")] {
        assert!(text.contains(&format!("\n  evidence  {part}")), "{part} in {text}");
    }
    let junit = report::junit(&report).unwrap();
    assert_eq!(junit.matches(&format!("\nevidence: {lacks}\n")).count(), 2, "{junit}");
    assert!(junit.contains(&format!("\ndecided at: {decision}\n")), "{junit}");
    assert!(junit.contains(&format!("\ndecided at: {nowhere}\n")), "{junit}");
    is_valid(&junit);
    let sarif = report::sarif(&report).unwrap();
    assert!(sarif.contains(&format!("\\nDecided at: {decision}\\nEvidence: {lacks}\\nEvidence: ")), "{sarif}");
    assert!(sarif.contains(&format!("\\nDecided at: {nowhere}\\nEvidence: {lacks}\"")), "{sarif}");
    let html = report::html(&report, out.path()).unwrap();
    assert_eq!(html.matches(&format!("<dt>missing</dt><dd>{lacks}</dd>")).count(), 2);
    assert!(html.contains(&format!("<dt>decided at</dt><dd>{nowhere}</dd>")));
    let ticket = report::ticket(&report, CASE).unwrap();
    assert!(ticket.contains(&format!("\n\n- {lacks}\n- {lacks_datagrams}")), "{ticket}");
}

/// If xmllint is installed, checks the file against the schema of Jenkins' xUnit plugin.
pub fn is_valid(junit: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("junit.xml");
    std::fs::write(&file, junit).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/junit.xsd");
    let mut command = Command::new("xmllint");
    match command.args(["--noout", "--schema"]).arg(schema).arg(&file).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => eprintln!("xmllint is not installed; only the snapshot is compared"),
    }
}

/// Returns the unpacked content of an element of the page. The element begins with `begin`, and
/// names the position of the content in the packed data.
fn unpacked(page: &str, begin: &str) -> Vec<u8> {
    let at = page.find(begin).unwrap_or_else(|| panic!("no {begin}"));
    let element = &page[at..at + page[at..].find('>').unwrap()];
    let at = element.split_once("data-at=\"").unwrap().1.split('"').next().unwrap();
    let [pack, from, to] = at.split(' ').collect::<Vec<_>>()[..] else { panic!("{at}") };
    let pack = page.split_once(&format!("id=\"{pack}\">")).unwrap().1.split('<').next().unwrap();
    let packed = STANDARD.decode(pack).unwrap();
    let mut octets = Vec::new();
    flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut octets).unwrap();
    octets[from.parse().unwrap()..to.parse().unwrap()].to_vec()
}

#[tokio::test]
async fn html_needs_nothing_but_itself() {
    let report = mixed().await;
    let text = report::html(&report, Path::new("/nowhere")).unwrap();
    for word in ["src=", "@import", "url(", "import(", "fetch(", "<link"] {
        assert!(!text.contains(word), "{word}");
    }
    // The page has no addresses except the names of XML namespaces.
    assert_eq!(text.matches("://").count(), text.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
    let statement = weft_core::requirement!("MPA-7.1.1-2").row().summary;
    let expected = "the target closes the connection and sends no byte before the close";
    for word in [statement, expected, "<svg", "prefers-color-scheme: dark"] {
        assert!(text.contains(word), "{word}");
    }
    assert!(text.contains("class=\"stimulus\"") && text.contains("class=\"wrong\""));
    assert!(text.contains(r#"href="cases/mpa/7.1.1-key/wrong-octet/octet=0/evidence.pcapng""#));
    assert_eq!(text.matches("<details id=").count(), report.results.len());
    // The page is short until the reader unfolds a part.
    assert!(!text.contains(" open>"));
}

/// The page begins with the verdict, then shows the causes of failures and the skipped cases. A
/// case for initiators is not counted, because the target is a responder.
#[tokio::test]
async fn html_begins_with_the_verdict_and_the_causes() {
    let out = tempfile::tempdir().unwrap();
    let mut report = mixed().await;
    let text = report::html(&report, out.path()).unwrap();
    // Three failures, one pass, one error and one inconclusive result are counted.
    let line = "<p class=\"line error\">The target fails 3 of 6 cases and violates 1 requirement.</p>";
    let note = "Not counted, because they are for another kind of target: 1 case.";
    let (head, rest) = text.split_once("<h2>Failures by cause</h2>").unwrap();
    assert!(head.contains(line) && head.contains(note), "{head}");
    assert!(head.contains("aria-label=\"MUST: ") && head.contains("<rect class=\"fail\" x=\"0\""), "{head}");
    let (failures, rest) = rest.split_once("<h2>Errors of weft, of its machine or of a script</h2>").unwrap();
    // The three variants fail in the same way, so they have one cause.
    assert_eq!(failures.matches("<li>").count(), 1, "{failures}");
    assert!(failures.contains("<strong>3 cases</strong> <code>MPA-7.1.1-2</code> MUST: "), "{failures}");
    assert!(failures.contains("<a href=\"#mpa/7.1.1-key/wrong-octet/octet=0\">"), "{failures}");
    let (errors, rest) = rest.split_once("<h2>No decision</h2>").unwrap();
    assert!(errors.contains("conect"), "{errors}");
    assert!(rest.contains("<details class=\"part\"><summary><h2>Cases that did not pass</h2>"));
    // A skipped case that a declaration would run is counted.
    report.results[5].verdict = weft_suites::model::Verdict::NotApplicable;
    report.results[5].explanation = "The target does not declare the capability markers.".into();
    report.summary = Summary::of(report.summary.status, report.summary.planned, &report.results, 5678);
    let text = report::html(&report, out.path()).unwrap();
    let skipped = "<li><p><strong>1</strong> The target does not declare the capability markers. If the target has \
                   this, declare <code>capabilities = [&#34;markers&#34;]</code>.</p></li>";
    assert!(text.contains("<p class=\"faint\">Skipped: 1 case.</p>") && text.contains(skipped), "{text}");
}

#[tokio::test]
async fn html_folds_passed_cases_and_cases_for_other_targets() {
    let out = tempfile::tempdir().unwrap();
    let passed = key_case(Target::builtin(), out.path()).await;
    let text = report::html(&passed, out.path()).unwrap();
    assert!(text.contains("<p class=\"line pass\">The target passes 16 of 16 cases.</p>"));
    assert!(
        text.contains("<details class=\"part\"><summary><h2>Cases that passed</h2> <span class=\"faint\">1</span>")
    );
    let other = key_case(Target::builtin_initiator(), out.path()).await;
    let text = report::html(&other, out.path()).unwrap();
    assert!(text.contains("<p class=\"line not-applicable\">Nothing was run.</p>"));
    assert!(text.contains("Not counted, because they are for another kind of target: 16 cases."));
    assert!(text.contains("<h2>Cases for another kind of target</h2>") && !text.contains("Skipped cases"));
}

/// A run can have very many causes. The page shows the first of them, and folds the others.
#[tokio::test]
async fn html_folds_long_lists() {
    let out = tempfile::tempdir().unwrap();
    let mut report = key_case(deviating(), out.path()).await;
    // Each result violates another requirement, and has another text without numbers.
    for (number, (result, (id, _))) in report.results.iter_mut().zip(weft_core::requirement::all()).enumerate() {
        let words = "wrong ".repeat(number + 1);
        result.actual = Some(format!("it did the {words}thing, of kind {number}"));
        result.requirements[0].requirement = id;
    }
    // The requirement that the results no longer violate.
    report.summary.failing.clear();
    report.summary.stale = (0..9).map(|number| format!("mpa/none/{number}: there is no such case")).collect();
    let text = report::html(&report, out.path()).unwrap();
    let (_, rest) = text.split_once("<h2>Failures by cause</h2>").unwrap();
    let (shown, rest) = rest.split_once("<details class=\"part\"><summary>4 more</summary>").unwrap();
    assert_eq!(shown.matches("<li>").count(), 12, "{shown}");
    let (folded, rest) = rest.split_once("<h2>Stale entries of the baseline</h2>").unwrap();
    assert_eq!(folded.matches("of kind ").count(), 4, "{folded}");
    assert_eq!(rest.split("<summary>4 more</summary>").next().unwrap().matches("<li ").count(), 5);
}

#[tokio::test]
async fn html_has_the_evidence_of_passed_cases() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin(), out.path()).await;
    let text = report::html(&report, out.path()).unwrap();
    for result in &report.results {
        assert_eq!(result.verdict, weft_suites::model::Verdict::Pass);
        let path = &result.evidence.files[0].path;
        let capture = unpacked(&text, &format!("<a class=\"capture\" href=\"{path}\""));
        assert_eq!(capture, std::fs::read(out.path().join(path)).unwrap());
        let rest = text.split_once(&format!("<details id=\"{}\"", result.key.path())).unwrap().1;
        // The element is in the section of its result. The packed data is at the end of the page.
        let story = String::from_utf8(unpacked(rest, "<div class=\"story")).unwrap();
        assert!(story.contains("<svg") && story.contains("class=\"stimulus\""), "{story}");
        assert!(story.contains(weft_core::requirement!("MPA-7.1.1-2").row().summary), "{story}");
        assert!(story.contains(&format!("byte {} changed", &result.key.path()[CASE.len() + "/octet=".len()..])));
    }
    // The packed data keeps the page short: about 4 kB for each result.
    assert!(text.len() < 100_000, "{} bytes", text.len());
}

/// A report can come from another host. Its paths must not put other files of this host into the
/// page, and must not become links to other places.
#[tokio::test]
async fn html_has_only_files_of_the_cases() {
    let (out, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut report = key_case(Target::builtin(), out.path()).await;
    report.results.truncate(4);
    let secret = other.path().join("secret");
    std::fs::write(&secret, "a secret").unwrap();
    std::fs::write(out.path().join("notes"), "a note").unwrap();
    std::os::unix::fs::symlink(&secret, out.path().join("cases/link")).unwrap();
    let paths = [secret.to_str().unwrap(), "cases/../notes", "javascript:alert(1)", "cases/link"];
    for (result, path) in report.results.iter_mut().zip(paths) {
        for file in &mut result.evidence.files {
            path.clone_into(&mut file.path);
        }
    }
    let text = report::html(&report, out.path()).unwrap();
    let linked = paths.map(|path| text.contains(&format!("href=\"{path}\"")));
    assert_eq!(linked, [false, false, false, true]);
    assert_eq!(text.matches("class=\"capture\"").count(), 1);
    assert!(text.contains("<a class=\"capture\" href=\"cases/link\" download>"), "a link has no content");
}

#[tokio::test]
async fn html_escapes_texts_of_a_script() {
    let out = tempfile::tempdir().unwrap();
    let folder = one_case(out.path(), "t:note('<script>alert(1)</script>') error('<b>')");
    let (report, _) =
        run(Target::builtin(), Suites::from_folder(&folder).unwrap(), Filter::everything(), out.path()).await;
    let text = report::html(&report, out.path()).unwrap();
    assert!(!text.contains("<script>alert") && !text.contains("<b>"), "{text}");
    assert!(text.contains("&lt;script&gt;alert") || text.contains("&#60;script&#62;alert"), "{text}");
}

#[tokio::test]
async fn json_is_read_back_and_all_files_are_written() {
    let report = mixed().await;
    let out = tempfile::tempdir().unwrap();
    report::write_all(&report, out.path()).unwrap();
    let text = std::fs::read_to_string(out.path().join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<RunReport>(&text).unwrap(), report);
    assert!(out.path().join("report.html").is_file() && out.path().join("junit.xml").is_file());
    assert!(report::write_all(&report, &out.path().join("nowhere")).is_err());
}

/// A target violates a requirement that no selected case tests. The cases pass, but the run fails.
/// Each summary contains the reason.
#[tokio::test]
async fn summaries_give_also_observed_violations_as_the_reason() {
    let out = tempfile::tempdir().unwrap();
    let target = Target::builtin().with_deviations(["mpa.pad-not-zero"]).unwrap();
    let report = key_case(target, out.path()).await;
    assert_eq!((report.summary.counts.pass, report.summary.exit_code.code()), (16, 1));
    let text = terminal(&report, false);
    let row = weft_core::requirement!("MPA-4.1-3").row();
    for line in [
        &format!("also observed: MPA-4.1-3 {} ({}): {}", row.level, row.role, row.summary)[..],
        &format!("  in        {CASE}[octet=0], {CASE}[octet=1], {CASE}[octet=2], 13 more"),
        &format!("  evidence  cases/{CASE}/octet=0"),
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert_eq!(text.matches("\nalso observed: ").count(), 2, "{text}");
    let reason = "exit code 1: also observed: the target violates MPA-2-5 in 16 cases, MPA-4.1-3 in 16 cases";
    assert!(text.lines().any(|line| line.starts_with(reason)), "{text}");
    let html = report::html(&report, out.path()).unwrap();
    assert!(
        html.contains("exit code 1: also observed: the target violates MPA-2-5 in 16 cases, MPA-4.1-3 in 16 cases")
    );
    // The first of these violations can be read without JavaScript.
    assert_eq!(html.matches("<svg class=\"ladder\"").count(), 1);
    assert!(
        html.contains("<p class=\"line fail\">No case of 16 cases fails, but the target violates 2 requirements.</p>")
    );
    let markdown = report::markdown(&report).unwrap();
    assert!(
        markdown.contains("Exit code 1: also observed: the target violates MPA-2-5 in 16 cases, MPA-4.1-3 in 16 cases"),
        "{markdown}"
    );
}

/// If a requirement makes a case fail, the summary does not report the same requirement again as
/// "also observed".
#[tokio::test]
async fn a_requirement_of_a_failing_case_is_not_reported_again() {
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["mpa/7.1.1-key", "mpa/7.1.3-other-protocol"]);
    let (report, _) = run(deviating(), Suites::embedded().unwrap(), filter, out.path()).await;
    let also_observed =
        report.results.iter().flat_map(|result| &result.requirements).filter(|judged| judged.also_observed);
    assert!(also_observed.count() > 0);
    let text = terminal(&report, false);
    assert!(text.contains("exit code 1: the target fails ") && !text.contains("also observed"), "{text}");
}

#[tokio::test]
async fn all_as_expected_needs_no_reason_and_the_evidence_has_its_source() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin(), out.path()).await;
    let text = terminal(&report, false);
    let source = "\nevidence of 16 cases: recorded by weft itself, with synthetic TCP headers\n";
    assert!(text.ends_with(source) && !text.contains("exit code"), "{text}");
    let html = report::html(&report, out.path()).unwrap();
    // If all evidence has the same source, the report shows the source once, at the top.
    assert_eq!(html.matches("recorded by weft itself").count(), 1);
    assert!(report::markdown(&report).unwrap().contains("Evidence of 16 cases: recorded by weft itself"));
}

/// Most evidence was captured on the wire. For one case, the capture was not complete, so weft
/// recorded the evidence itself.
#[tokio::test]
async fn captured_and_synthetic_evidence_are_distinguished() {
    use weft_suites::model::EvidenceSource;
    let out = tempfile::tempdir().unwrap();
    let mut report = key_case(Target::builtin(), out.path()).await;
    for result in &mut report.results {
        result.evidence.source = EvidenceSource::Wire;
    }
    report.results[0].evidence.source = EvidenceSource::Endpoint;
    report.results[0].evidence.without_wire = Some("the capture is over".into());
    let text = terminal(&report, false);
    assert!(text.contains("\nevidence of 15 cases: captured on the wire\n"), "{text}");
    assert!(
        text.contains(
            "\nevidence of 1 case: recorded by weft itself, with synthetic TCP headers (the capture is over)\n"
        ),
        "{text}"
    );
    let html = report::html(&report, out.path()).unwrap();
    // The report shows each source once at the top, and once with each of its results.
    assert_eq!(html.matches("captured on the wire").count(), 1 + 15);
    assert_eq!(html.matches("the capture is over").count(), 2);
}

#[tokio::test]
async fn untried_cases_are_counted_unless_each_is_wanted() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin_initiator(), out.path()).await;
    let count = |text: &str| text.lines().filter(|line| line.trim_start().starts_with("not-applicable mpa")).count();
    assert_eq!(count(&terminal(&report, false)), 0);
    let buffer = Buffer::default();
    let verbose = report::Terminal::new(buffer.clone(), false).verbose(true);
    replay(&verbose, &report);
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    assert_eq!(count(&text), 16, "{text}");
    for text in [text, terminal(&report, false)] {
        assert!(text.contains("\nnot-applicable, 16 cases: The target's role is initiator"), "{text}");
        assert!(text.contains("\nexit code 2: nothing was run\n"), "{text}");
    }
}
