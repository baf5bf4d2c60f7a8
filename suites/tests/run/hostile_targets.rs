//! Tests with targets that misbehave. Each case ends in time, with a verdict and an explanation.

use std::future::Future;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::common::CASE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weft_suites::Filter;
use weft_suites::model::{CaseResult, StepKind, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

/// Runs one case against a target that handles each connection with `serve`. Time limits are a
/// tenth of their usual values.
async fn result_against<F: Future<Output = ()> + Send>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> CaseResult {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream).await;
        }
    });
    let text = format!("name = \"odd\"\nkind = \"tcp\"\naddress = \"{address}\"\ntime_scale = 0.1\n");
    let target = Target::from_toml("odd.toml", &text).unwrap();
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of([format!("{CASE}[octet=0]")]);
    let (mut report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    server.abort();
    report.results.remove(0)
}

/// The target sends nothing, so each case would wait for its time-outs. After the first cases, weft
/// gives up.
#[tokio::test]
async fn a_silent_target_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "name = \"mute\"\nkind = \"tcp\"\naddress = \"{}\"\ntime_scale = 0.1\n",
        listener.local_addr().unwrap()
    );
    let target = Target::from_toml("mute.toml", &text).unwrap();
    let taken = Arc::new(AtomicU32::new(0));
    let count = taken.clone();
    let server = tokio::spawn(async move {
        let mut streams = Vec::new();
        loop {
            streams.push(listener.accept().await.unwrap());
            count.fetch_add(1, Relaxed);
        }
    });
    let out = tempfile::tempdir().unwrap();
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out.path()).await;
    server.abort();
    assert_eq!((report.results.len(), taken.load(Relaxed)), (16, 3));
    assert!(report.results.iter().all(|result| result.verdict == Verdict::Inconclusive));
    let is_given_up = |result: &&CaseResult| result.explanation.contains("sends nothing: 3 cases waited");
    assert_eq!(report.results.iter().filter(is_given_up).count(), 13);
}

/// The target behaves as required in one exchange. After the stimulus, it does nothing.
#[tokio::test]
async fn a_target_that_dies_of_the_stimulus_fails() {
    let died = Arc::new(AtomicBool::new(false));
    let result = result_against(move |mut stream| {
        let died = died.clone();
        async move {
            let mut request = [0; 20];
            if died.load(Relaxed) || stream.read_exact(&mut request).await.is_err() {
                return;
            }
            if request.starts_with(b"MPA ID Req Frame") {
                stream.write_all(b"MPA ID Rep Frame\x40\x01\x00\x00").await.unwrap();
                let _ = stream.read(&mut request).await;
            } else {
                died.store(true, Relaxed);
            }
        }
    })
    .await;
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    assert!(result.steps.iter().any(|step| step.kind == StepKind::Met));
    assert!(result.explanation.starts_with("The target died during the case."), "{}", result.explanation);
    assert_eq!(result.requirements[0].verdict, Verdict::Fail);
}

#[tokio::test]
async fn silence_is_inconclusive() {
    let result = result_against(|stream| async move { std::mem::forget(stream) }).await;
    assert_eq!(result.verdict, Verdict::Inconclusive);
    assert!(result.explanation.contains("did not answer"), "{}", result.explanation);
}

#[tokio::test]
async fn garbage_is_inconclusive_and_explained() {
    let result = result_against(|mut stream| async move {
        // It is possible that the tester closes before all bytes are written, so the result is
        // ignored.
        let _ = stream.write_all(&vec![0xa5; 1 << 20]).await;
    })
    .await;
    assert_eq!(result.verdict, Verdict::Inconclusive);
    assert!(result.explanation.contains("when its Reply was expected"), "{}", result.explanation);
}

#[tokio::test]
async fn a_reply_that_announces_more_than_it_sends_is_inconclusive() {
    let result = result_against(|mut stream| async move {
        stream.write_all(b"MPA ID Rep Frame\x40\x01\xff\xff").await.unwrap();
        std::mem::forget(stream);
    })
    .await;
    assert_eq!(result.verdict, Verdict::Inconclusive);
    assert!(result.explanation.contains("sent 20 bytes when its Reply was expected"), "{}", result.explanation);
}

#[tokio::test]
async fn a_close_at_once_is_inconclusive() {
    let result = result_against(|stream| async move { drop(stream) }).await;
    assert_eq!(result.verdict, Verdict::Inconclusive);
    assert!(result.explanation.contains("the connection when its Reply was expected"), "{}", result.explanation);
}

/// A target that dies when it receives a Request with a wrong key. Its restart command creates the
/// file `back`. When this file exists, the target answers again.
async fn dies_of_a_wrong_key(listener: TcpListener, back: std::path::PathBuf) {
    let mut dead = true;
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        if std::fs::remove_file(&back).is_ok() {
            dead = false;
        }
        let mut request = [0; 20];
        if dead || stream.read_exact(&mut request).await.is_err() {
            continue;
        }
        if request.starts_with(b"MPA ID Req Frame") {
            stream.write_all(b"MPA ID Rep Frame\x40\x01\x00\x00").await.unwrap();
            let _ = stream.read(&mut request).await;
        } else {
            dead = true;
        }
    }
}

/// The target is dead at the beginning, and dies again of the stimulus of each case. weft restarts
/// it, so that each case can perform its good exchange.
#[tokio::test]
async fn a_dead_target_is_restarted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (back, calls) = (folder.path().join("back"), folder.path().join("calls"));
    let line = format!("echo called >>'{}'; : >'{}'", calls.display(), back.display());
    let text = format!(
        "name = \"mortal\"\nkind = \"tcp\"\naddress = \"{}\"\ntime_scale = 0.1\nrestart = [\"/bin/sh\", \"-c\", \"{line}\"]\n",
        listener.local_addr().unwrap()
    );
    let target = Target::from_toml("mortal.toml", &text).unwrap();
    let server = tokio::spawn(dies_of_a_wrong_key(listener, back));
    let filter = Filter::of([format!("{CASE}[octet=0]"), format!("{CASE}[octet=1]")]);
    let out = tempfile::tempdir().unwrap();
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    server.abort();
    // There are three restarts. The first case finds the target dead, so weft restarts the target
    // and runs the case again. There is one more restart after each of the two cases.
    assert_eq!(std::fs::read_to_string(calls).unwrap().lines().count(), 3);
    for result in &report.results {
        assert_eq!(result.verdict, Verdict::Fail);
        assert!(
            result.steps.iter().any(|step| step.kind == StepKind::Met),
            "the close is evidence: {:?}",
            result.steps
        );
        assert!(
            result.explanation.ends_with("The target was dead after the case, and was restarted."),
            "{}",
            result.explanation
        );
    }
}

#[tokio::test]
async fn a_target_that_does_not_come_back_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "name = \"dead\"\nkind = \"tcp\"\naddress = \"{}\"\ntime_scale = 0.1\nrestart = [\"/bin/false\"]\n",
        listener.local_addr().unwrap()
    );
    let target = Target::from_toml("dead.toml", &text).unwrap();
    let server = tokio::spawn(async move {
        loop {
            drop(listener.accept().await.unwrap());
        }
    });
    let out = tempfile::tempdir().unwrap();
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out.path()).await;
    server.abort();
    assert!(report.results.iter().all(|result| result.verdict == Verdict::Inconclusive));
    let first = &report.results[0].explanation;
    assert!(first.ends_with("after the case, and its restart failed: /bin/false: exit status: 1."), "{first}");
    let is_given_up =
        |result: &&CaseResult| result.explanation.starts_with("The target is dead, and its restart failed: /bin/false");
    assert_eq!(report.results.iter().filter(is_given_up).count(), 15);
}

/// weft stores bytes that arrive while a case waits for something else, but only up to a limit.
#[tokio::test]
async fn datagrams_without_end_do_not_fill_the_memory() {
    let flood = "dd if=/dev/zero bs=2000 status=none >/dev/udp/{mapper_address}/{mapper_port}";
    let text = format!(
        "name = \"flood\"\nkind = \"tcp\"\nrole = \"initiator\"\nlisten = \"127.0.0.1:0\"\nservice = \"port-mapper\"\n\
         start = [\"bash\", \"-c\", \"{flood}\"]\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let waits = "local m = t:port_mapper {} m:start { service = 1 } m:expect_no_connection { within = 60 }";
    let suites = crate::common::one_case(folder.path(), waits);
    let script = std::fs::read_to_string(suites.join("mpa/x.lua")).unwrap();
    let asks = "roles = { 'initiator' }, capabilities = { 'port-mapper' }";
    std::fs::write(suites.join("mpa/x.lua"), script.replace("roles = { 'responder' }", asks)).unwrap();
    let (target, suites) = (Target::from_toml("flood.toml", &text).unwrap(), Suites::from_folder(&suites).unwrap());
    let (report, _) = crate::common::run(target, suites, Filter::everything(), &folder.path().join("out")).await;
    let result = &report.results[0];
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    assert_eq!(result.actual.as_deref(), Some("it sent more than 16777216 bytes"), "{}", result.explanation);
}

/// The report contains the output of the command `crashed` from the target file.
#[tokio::test]
async fn the_last_words_of_a_dead_target_are_in_the_report() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let back = folder.path().join("back");
    std::fs::write(&back, "").unwrap();
    let text = format!(
        "name = \"mortal\"\nkind = \"tcp\"\naddress = \"{}\"\ntime_scale = 0.1\n\
         crashed = [\"/bin/sh\", \"-c\", \"echo booted; echo Kernel panic - not syncing\"]\n",
        listener.local_addr().unwrap()
    );
    let target = Target::from_toml("mortal.toml", &text).unwrap();
    let server = tokio::spawn(dies_of_a_wrong_key(listener, back));
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of([format!("{CASE}[octet=0]")]);
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    server.abort();
    let result = &report.results[0];
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    assert!(result.explanation.ends_with("Its last output: Kernel panic - not syncing."), "{}", result.explanation);
    assert!(result.steps.iter().any(|step| step.text == "last output of the target: booted"), "{:?}", result.steps);
}

/// Runs a script that waits for a close, against a target that answers a Request and is then
/// silent. `crashed` is the line of the target file with the command that shows the console.
async fn verdict_on_silence(crashed: &str) -> CaseResult {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let mut streams = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 20]).await.unwrap();
            stream.write_all(b"MPA ID Rep Frame\x40\x01\x00\x00").await.unwrap();
            streams.push(stream);
        }
    });
    let text = format!("name = \"silent\"\nkind = \"tcp\"\naddress = \"{address}\"\ntime_scale = 0.1\n{crashed}");
    let folder = tempfile::tempdir().unwrap();
    let script = "local c = t:start_up {} c:send(mpa.fpdu { ulpdu = rdmap.send { payload = 'weft' } }:flip(27), \
                  { deviates = true }) c:expect_close { requirement = 'MPA-7.1.1-2' } t:liveness()";
    let suites = Suites::from_folder(&crate::common::one_case(folder.path(), script)).unwrap();
    let target = Target::from_toml("silent.toml", &text).unwrap();
    let out = folder.path().join("out");
    let (mut report, _) = crate::common::run(target, suites, Filter::everything(), &out).await;
    server.abort();
    report.results.remove(0)
}

/// The script ends before its liveness exchange, so only the console can show that the target died.
#[tokio::test]
async fn a_target_whose_console_shows_a_crash_after_the_stimulus_fails() {
    let result = verdict_on_silence("crashed = [\"/bin/sh\", \"-c\", \"echo BUG: kernel NULL pointer\"]\n").await;
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
    assert!(result.explanation.starts_with("The target died during the case."), "{}", result.explanation);
    let no_control = " weft made no control run (the case without its unusual step), because a target with the service none sends no answers.";
    let end = format!("Its last output: BUG: kernel NULL pointer.{no_control}");
    assert!(result.explanation.ends_with(&end), "{}", result.explanation);
    for crashed in ["crashed = [\"/bin/false\"]\n", ""] {
        let result = verdict_on_silence(crashed).await;
        assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.explanation);
    }
}
