//! Tests the functions with which a script controls a connection, and the values that these
//! functions return.

use crate::common::{one_case, run};
use weft_suites::Filter;
use weft_suites::model::{CaseResult, Direction, StepKind, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

/// Each script in this file ends with these lines. They have an expectation with a requirement, and
/// a liveness exchange.
const END: &str = "\nlocal z = t:connect() z:send(t:request():flip(1))\n\
                   z:expect_close { requirement = 'MPA-7.1.1-2' } t:liveness()";

async fn against(target: Target, body: &str) -> CaseResult {
    let out = tempfile::tempdir().unwrap();
    let suites = Suites::from_folder(&one_case(out.path(), &format!("t:good_exchange()\n{body}{END}"))).unwrap();
    let (mut report, _) = run(target, suites, Filter::everything(), out.path()).await;
    report.results.remove(0)
}

async fn passes(body: &str) -> CaseResult {
    let result = against(Target::builtin(), body).await;
    assert_eq!(result.verdict, Verdict::Pass, "{body}: {}", result.explanation);
    result
}

#[tokio::test]
async fn a_message_goes_in_pieces_with_pauses() {
    let body =
        "local c = t:connect()\nc:send(t:request(), { cuts = { 3, 16 }, pause = 0.5 })\nc:expect_reply()\nc:close()";
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let result = against(target, body).await;
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
        let pieces: Vec<_> = result.steps.iter().filter(|step| step.text.contains("piece")).collect();
        let lens: Vec<u64> = pieces.iter().map(|step| step.octets.as_ref().unwrap().len).collect();
        assert_eq!(lens, [3, 13, 4]);
        assert!(pieces[2].at_ns - pieces[0].at_ns >= 1_000_000_000);
    }
    let result = passes("local c = t:connect()\nc:send(t:request(), { every = 1 })\nc:expect_reply()").await;
    assert_eq!(result.steps.iter().filter(|step| step.text.contains("piece")).count(), 20);
}

#[tokio::test]
async fn a_half_close_is_a_fin_and_nothing_else() {
    let result = passes("local c = t:connect()\nc:send(t:request():cut(19))\nc:finish()\nc:expect_close()").await;
    let of = |direction| result.steps.iter().filter(|s| s.direction == direction && s.kind == StepKind::Fin).count();
    assert!(of(Direction::Sent) >= 1 && of(Direction::Received) >= 1);
}

#[tokio::test]
async fn scripts_get_plain_values_back() {
    passes(
        "local c = t:connect()\nc:send(t:request { private_data = 'hi' })\nlocal r = c:expect_reply()\n\
         assert(r.revision == 1 and r.crc and not r.reject and r.flags == 0x40 and r.private_data == '', r.flags)\n\
         c:send(mpa.fpdu { ulpdu = rdmap.send { payload = 'weft' } })\n\
         local f = c:expect_fpdu { opcode = 3, payload = 'weft', crc = true }\n\
         assert(f.msn == 1 and f.qn == 0 and f.last and not f.tagged and f.crc_is_right and #f.ulpdu == 22)\nc:close()",
    )
    .await;
    passes(
        "local c = t:connect()\nc:send(t:request())\nassert(c:expect_octets { begins = 'MPA' } :sub(1, 3) == 'MPA')",
    )
    .await;
}

#[tokio::test]
async fn two_messages_go_as_one() {
    let body = "local c = t:connect()\nc:send(t:request())\nc:expect_reply()\n\
                c:send(mpa.fpdu { ulpdu = rdmap.send { payload = 'x' } } .. mpa.fpdu { ulpdu = rdmap.send { msn = 2 } })\n\
                c:expect_fpdu { payload = 'x' }\nc:expect_fpdu { payload = '' }";
    passes(body).await;
}

#[tokio::test]
async fn silence_is_looked_at_and_needs_liveness() {
    let result = passes("local c = t:connect()\nc:expect_silence { within = 1 }\nc:reset()").await;
    assert!(result.steps.iter().any(|step| step.kind == StepKind::Silence && step.text == "nothing within 1 s"));
    let broken = "local c = t:connect()\nc:send(t:request())\nc:expect_silence { requirement = 'MPA-7.1.1-2' }";
    assert_eq!(against(Target::builtin(), broken).await.verdict, Verdict::Fail);
}

#[tokio::test]
async fn a_check_of_the_script_is_an_expectation() {
    passes("t:check(true, { requirement = 'MPA-7.1.1-2', expected = 'one', actual = 'one' })").await;
    let body = "t:check(1 == 2, { requirement = 'MPA-7.1.1-2', expected = 'one', actual = 'two' })";
    let result = against(Target::builtin(), body).await;
    assert_eq!((result.verdict, result.actual.as_deref()), (Verdict::Fail, Some("two")));
}

/// `next` returns the name of the event and, for some events, its fields. The case continues after
/// every event.
#[tokio::test]
async fn next_returns_the_event_and_decides_nothing() {
    let result = passes(
        "local c = t:connect()\nassert(c:next { within = 1 } == nil)\nc:send(t:request())\n\
         local what, r = c:next()\nassert(what == 'reply' and r.revision == 1, what)\n\
         c:send(mpa.fpdu { ulpdu = rdmap.send { payload = 'weft' } })\n\
         local what, f = c:next {}\nassert(what == 'fpdu' and f.opcode == 3 and f.payload == 'weft', what)\n\
         c:finish()\nassert(c:next {} == 'close')",
    )
    .await;
    assert!(result.steps.iter().any(|step| step.kind == StepKind::Silence && step.text == "nothing within 1 s"));
}

#[tokio::test]
async fn a_script_reads_the_clock() {
    let body = "local at = t:clock()\nt:pause(0.5)\nassert(t:clock() - at >= 0.5, t:clock() - at)";
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let result = against(target, body).await;
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    }
}

/// If the tester's receive buffer is smaller than the echo, the target sends the rest of the echo
/// when the tester reads.
#[tokio::test]
async fn a_small_receive_buffer_loses_no_bytes() {
    let body = "t:receive_buffer(2048)\nlocal c = t:connect()\nc:send(t:request())\nc:expect_reply()\n\
                local sent, got = octets.counted(9000), ''\n\
                c:send(mpa.fpdu { ulpdu = rdmap.send { payload = sent } })\nt:pause(0.1)\n\
                repeat local f = c:expect_fpdu { opcode = 3 } got = got .. f.payload until f.last\n\
                assert(got == sent, #got)\nc:close()";
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let result = against(target, body).await;
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    }
}

/// The bytes that the tester reads one at a time are the beginning of the next FPDU.
#[tokio::test]
async fn a_script_reads_single_bytes() {
    let body = "t:receive_buffer(2048)\nlocal c = t:start_up()\nassert(not c:read_part(1, { within = 0.1 }))\n\
                local sent, got = octets.counted(9000), ''\n\
                c:send(mpa.fpdu { ulpdu = rdmap.send { payload = sent } })\n\
                for _ = 1, 30 do assert(c:read_part(1)) end\n\
                repeat local f = c:expect_fpdu { opcode = 3 } got = got .. f.payload until f.last\n\
                assert(got == sent, #got)\nc:close()";
    for target in [Target::builtin(), Target::builtin_tcp()] {
        let result = against(target, body).await;
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    }
}

#[tokio::test]
async fn a_script_chooses_its_segments() {
    let body = "local c = t:connect()\nc:send_segments(t:request(), { cuts = { 4, 18 }, order = { 3, 2, 3 } })\n\
                c:expect_reply()\nlocal function fpdu(msn, payload)\n\
                return mpa.fpdu { ulpdu = rdmap.send { msn = msn, payload = payload } } end\n\
                c:withhold(fpdu(1, 'weft') .. fpdu(2, 'late'), { cuts = { 30 } })\nc:send_segment(2, { fragment = 8 })\n\
                assert(c:next { within = 1 } == nil)\nc:send_withheld()\n\
                c:expect_fpdu { payload = 'weft' }\nc:expect_fpdu { payload = 'late' }\n\
                c:retransmit(fpdu(1, 'b') .. fpdu(2, 'a'))\nassert(c:next { within = 1 } == nil)\nc:close()";
    // A Send of one byte is as long as a Send of four bytes, because its FPDU has three bytes of PAD.
    let result = passes(body).await;
    let texts: Vec<&str> = result.steps.iter().map(|step| step.text.as_str()).collect();
    for text in [
        "MPA Request, segment 3 of 3 (2 bytes), before segment 1",
        "MPA Request, segment 2 of 3 (14 bytes), before segment 1",
        "MPA Request, segment 3 of 3 (2 bytes), before segment 1, again",
        "MPA Request, segment 1 of 3 (4 bytes)",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    let second = ", segment 2 of 2 (26 bytes), before segment 1, in IP fragments of at most 8 bytes";
    for part in [second, "the rest of ", ", as a retransmission (56 bytes)"] {
        assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
    }
}

#[tokio::test]
async fn a_wrong_use_of_segments_is_an_error() {
    for (body, why) in [
        ("c:send_segment(1)", "no message is withheld"),
        ("c:withhold('abc')\nc:send('d')", "call conn:send_withheld() first"),
        ("c:withhold('abc')\nc:send_segment(2)", "there is no TCP segment 2; the message has 1"),
        ("c:withhold('abc', { cuts = { 3 } })", "a TCP segment cannot begin at the offset 3 of a message of 3 bytes"),
        ("c:send_segments('abc', { order = { 2 } })", "order: expected at most 4096 numbers from 1 to 1"),
        ("c:retransmit('abc')", "has not sent the message"),
        ("c:send('ab')\nc:retransmit('abc')", "a retransmission of 3 bytes replaces a message of 2 bytes"),
    ] {
        let result = against(Target::builtin(), &format!("local c = t:connect()\n{body}")).await;
        assert_eq!(result.verdict, Verdict::Error, "{body}: {}", result.explanation);
        assert!(result.explanation.contains(why), "{body}: {}", result.explanation);
    }
    // Over real TCP, the operating system chooses the segments.
    for body in ["t:connect():withhold('abc')", "t:first_sequence(7)"] {
        let result = against(Target::builtin_tcp(), body).await;
        assert_eq!(result.verdict, Verdict::Error, "{body}: {}", result.explanation);
        assert!(result.explanation.contains("declare capabilities"), "{body}: {}", result.explanation);
    }
}

#[tokio::test]
async fn cases_about_segments_need_a_target_whose_segments_the_tester_chooses() {
    let out = tempfile::tempdir().unwrap();
    let suites = Suites::embedded().unwrap();
    let (report, _) = run(Target::builtin_tcp(), suites, Filter::of(["ddp/3-segments"]), out.path()).await;
    for result in &report.results {
        assert_eq!(result.verdict, Verdict::NotApplicable, "{}", result.explanation);
        assert!(result.explanation.contains("use a target of kind \"builtin\""), "{}", result.explanation);
    }
    assert!(!report.results.is_empty());
}

/// A target in this process serves 1,024 connections at a time.
#[tokio::test]
async fn closed_and_reset_connections_use_nothing() {
    let body = "for _ = 1, 600 do\nlocal c = t:connect()\nc:send(t:request():flip(3))\nc:close()\nc:reset()\n\
                local r = t:connect()\nr:send(t:request())\nr:reset()\nend";
    passes(body).await;
}

/// If an answer is late and the expectation has `overdue_fails`, the case fails. Without
/// `overdue_fails`, the case is inconclusive.
#[tokio::test]
async fn lateness_fails_if_the_case_demands_it() {
    let body = |more: &str| {
        format!(
            "local c = t:connect()\nc:send(t:request():cut(4))\n\
             c:expect_close {{ requirement = 'MPA-7.1.1-2', within = 1{more} }}"
        )
    };
    assert_eq!(against(Target::builtin(), &body("")).await.verdict, Verdict::Inconclusive);
    let result = against(Target::builtin(), &body(", overdue_fails = true")).await;
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.explanation);
}

#[tokio::test]
async fn an_impossible_cut_is_refused() {
    for body in [
        "t:connect():send('abc', { cuts = { 3 } })",
        "t:connect():send('abc', { cuts = { 0 } })",
        "t:connect():send('abc', { every = 0 })",
        "t:connect():send('abc', { pause = -1 })",
        "t:connect():send('abc', { cut = { 1 } })",
        "t:connect():send(('x'):rep(8192), { every = 1 })",
        "t:pause(1e9)",
    ] {
        assert_eq!(against(Target::builtin(), body).await.verdict, Verdict::Error, "{body}");
    }
}

/// The builtin responder answers an enhanced Request in the client-server model and in the
/// peer-to-peer model.
#[tokio::test]
async fn the_good_exchange_is_enhanced_if_the_target_file_has_it() {
    for (table, flags) in
        [("{ ird = 2, ord = 3 }", "50"), ("{ rtr = [\"write\"] }", "50"), ("{ rtr = [\"read\"] }", "50")]
    {
        let text = format!("name = \"b\"\nkind = \"builtin\"\n[startup]\nrevision = 2\nenhanced = {table}\n");
        let result = against(Target::from_toml("b.toml", &text).unwrap(), "").await;
        assert_eq!(result.verdict, Verdict::Pass, "{table}: {}", result.explanation);
        let request = result.steps.iter().find_map(|step| step.octets.as_ref()).unwrap();
        assert_eq!(&request.hex[32..36], format!("{flags}02"));
        let ready = result.steps.iter().filter(|step| step.text.contains("ready to receive")).count();
        assert_eq!(ready, if table.contains("rtr") { 2 } else { 0 }, "{table}");
    }
}

/// Linux's iwcm cannot handle a close directly after its Reply, so the tester waits before it
/// closes. If the close is the stimulus of the case, the tester sends it immediately.
#[tokio::test]
async fn an_end_that_tries_nothing_lets_the_target_settle() {
    let slow = "name = \"slow\"\nkind = \"builtin\"\n[startup]\nsettle_ms = 500\n";
    let delay_after_reply = async |end: &str, kind: StepKind, verdict: Verdict| {
        let body = format!("local c = t:connect()\nc:send(t:request())\nc:expect_reply {{ reject = false }}\n{end}");
        let result = against(Target::from_toml("slow.toml", slow).unwrap(), &body).await;
        assert_eq!(result.verdict, verdict, "{}", result.explanation);
        // Connection 1 is that of the good exchange before the script.
        let of = |direction, kind| {
            let mut steps = result.steps.iter().filter(|step| step.connection == 2);
            steps.find(|step| (step.direction, step.kind) == (direction, kind)).unwrap().at_ns
        };
        of(Direction::Sent, kind) - of(Direction::Received, StepKind::Octets)
    };
    assert_eq!(delay_after_reply("c:close()", StepKind::Fin, Verdict::Pass).await, 500_000_000);
    assert_eq!(delay_after_reply("c:finish()", StepKind::Fin, Verdict::Pass).await, 0);
    assert_eq!(delay_after_reply("c:reset()", StepKind::Reset, Verdict::Pass).await, 0);
    // If the case ends here, the engine closes the connection. It waits too.
    let fails = "t:check(false, { requirement = 'MPA-7.1.1-2', expected = 'one', actual = 'another' })";
    assert_eq!(delay_after_reply(fails, StepKind::Reset, Verdict::Fail).await, 500_000_000);
}

/// A requirement passes if the target sent a message that shows that the requirement is met.
/// Otherwise, it is inconclusive.
#[tokio::test]
async fn a_row_is_shown_by_its_message_alone() {
    let of = async |about: &str| {
        let out = tempfile::tempdir().unwrap();
        let script = format!(
            "local shown = sdp.shown {{ 'hello_ack', {about} }}\n\
             case {{ id = 'sdp/x/one', version = 1, title = 'One', requirements = shown, roles = {{ 'responder' }},\n\
             capabilities = {{ 'sdp-echo' }}, run = function(t)\n\
             local s = t:sdp {{}} s:send(sdp.data {{ payload = 'hi' }}) s:collect(2) s:close {{ shows = shown }}\n\
             t:liveness() end }}\n"
        );
        let suites = out.path().join("suites");
        std::fs::create_dir_all(suites.join("sdp")).unwrap();
        std::fs::write(suites.join("sdp/x.lua"), script).unwrap();
        let suites = Suites::from_folder(&suites).unwrap();
        let (mut report, _) = run(Target::builtin(), suites, Filter::everything(), out.path()).await;
        report.results.remove(0)
    };
    let result = of("'data', 'dis_conn'").await;
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    for (about, expected) in [("'src_avail'", "a SrcAvail"), ("'data', 'urgent'", "Out-Of-Band")] {
        let result = of(about).await;
        assert_eq!(result.verdict, Verdict::Inconclusive, "{about}: {}", result.explanation);
        assert!(result.expected.unwrap().contains(expected));
        assert!(result.requirements.iter().all(|judged| judged.verdict == Verdict::Inconclusive), "{about}");
    }
}
