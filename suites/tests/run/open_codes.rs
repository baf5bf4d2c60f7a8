//! Tests the codes and headers in Terminates. For some errors, the RFCs allow more than one error
//! code (`interop/siw/README.md` lists these errors). A case passes with each allowed code, and
//! fails with any other code. Figure 10 of RFC 5040 requires copied headers in some Terminates. If
//! these headers are missing, only the cases about the headers fail.

use std::net::{SocketAddr, TcpListener};

use weft_agent::Limits;
use weft_agent::listen::listen;
use weft_agent::soft::SoftAgent;
use weft_peer::Settings;
use weft_peer::service::RpingServer;
use weft_suites::Filter;
use weft_suites::model::{CaseResult, Direction, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::{run, with_all_steps};
use crate::relay::{LOOPBACK, echo, relay, rping};

/// The position of Terminate Control in a ULPDU. It follows the header of an untagged segment.
const CONTROL: usize = 18;
/// Length of Terminate Control, with its reserved bits (RFC 5040 section 4.8).
const CONTROL_LEN: usize = 4;

/// The program of the target.
#[derive(Debug, Clone, Copy)]
enum Program {
    Echo,
    Rping,
    Agent,
}

/// Starts an agent. Returns the address that its device uses in a case, and the lines of the target
/// file about the agent.
fn agent() -> (SocketAddr, String) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let control = listener.local_addr().unwrap();
    let device = || SoftAgent::new(Settings::default(), Limits::default());
    std::thread::spawn(move || listen(&listener, None, device, |_, _| {}));
    // The port is free at this moment. If another process takes it in the meantime, the agent
    // cannot listen and the test fails.
    let address = TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    (address, format!("agent = \"{control}\"\nagent_at = \"{address}\""))
}

/// Runs a variant against weft's own responder. `change` changes each Terminate that the responder
/// sends.
async fn result_of(program: Program, key: &str, change: impl Fn(&mut Vec<u8>) + Clone + Send + 'static) -> CaseResult {
    let (responder, lines) = match program {
        Program::Echo => (echo(Settings::default()), "service = \"echo\"".to_owned()),
        Program::Rping => (rping(), format!("service = \"rping\"\nrping_size = {}", RpingServer::SIZE)),
        Program::Agent => agent(),
    };
    let changed = move |ulpdu: &mut Vec<u8>| {
        let is_terminate = ulpdu[0] & 0x80 == 0 && ulpdu[1] & 0xf == 7;
        if is_terminate {
            change(ulpdu);
        }
    };
    let address = relay(responder, changed).await;
    let text = format!(
        "name = \"other\"\nkind = \"tcp\"\naddress = \"{address}\"\ncapabilities = [\"crc\", \"revision-2\"]\n{lines}\n"
    );
    let target = Target::from_toml("other.toml", &text).unwrap();
    let out = tempfile::tempdir().unwrap();
    let (report, _) = run(target, Suites::embedded().unwrap(), Filter::of([key]), out.path()).await;
    let [result] = &report.results[..] else { panic!("{key}: {} results", report.results.len()) };
    with_all_steps(result, out.path())
}

/// Returns two bytes of the Terminate that the tester received. The first byte has the layer and
/// the error type, and the second byte has the error code.
fn code_of(result: &CaseResult) -> Option<[u8; 2]> {
    let mut received = result.steps.iter().filter(|step| step.direction == Direction::Received);
    let terminate = received.find(|step| step.text == "FPDU with Terminate")?;
    // ULPDU_Length, which has two bytes, precedes the ULPDU.
    let shown: Vec<u8> = terminate.octets.as_ref()?.shown().skip(2 + CONTROL).take(2).collect();
    shown.try_into().ok()
}

/// Each line has the program, the variant, and the allowed codes. Then it has a requirement, and
/// another code that violates this requirement.
#[tokio::test]
async fn each_code_that_the_rfcs_allow_passes() {
    use Program::{Agent, Echo, Rping};
    for (program, key, allowed, violated, other) in [
        // The tester sends a Write without the access right, or with the STag of another
        // connection. For a missing right, RFC 5041 section 7.2 has no separate code.
        (Agent, "ddp/8.3-rights/write-right", &[[0x11, 0x00], [0x11, 0x02]][..], "DDP-7.2-5", [0x01, 0x02]),
        (Rping, "ddp/8.2-association/write", &[[0x11, 0x00], [0x11, 0x02]], "DDP-7.2-5", [0x01, 0x02]),
        // The tester sends more Reads than the IRD allows. RFC 5040 defines no code for this error.
        (
            Rping,
            "rdmap/5.2-read/too-many[beyond=1]",
            &[[0x12, 0x02], [0x12, 0x03], [0x02, 0x07]],
            "DDP-7.2-10",
            [0x12, 0x01],
        ),
        // The tester sends an MSN for which the target has no buffer. The code depends on how the
        // target manages its buffers.
        (Echo, "ddp/7.1-untagged/msn[ahead=100000]", &[[0x12, 0x02], [0x12, 0x03]], "DDP-7.2-10", [0x12, 0x01]),
        (
            Rping,
            "rdmap/4.8-terminate/layout[kind=read-number]",
            &[[0x12, 0x02], [0x12, 0x03]],
            "RDMAP-4.8-38",
            [0x12, 0x01],
        ),
    ] {
        let with = async |code: [u8; 2]| {
            let change = move |ulpdu: &mut Vec<u8>| ulpdu[CONTROL..CONTROL + 2].copy_from_slice(&code);
            let result = result_of(program, key, change).await;
            assert_eq!(code_of(&result), Some(code), "{key}: {}", result.explanation);
            result
        };
        for code in allowed {
            let result = with(*code).await;
            assert_eq!(result.verdict, Verdict::Pass, "{key}, {code:02x?}: {}", result.explanation);
        }
        let result = with(other).await;
        assert_eq!(result.verdict, Verdict::Fail, "{key}, {other:02x?}: {}", result.explanation);
        assert!(result.failing().any(|row| row.as_str() == violated), "{key}: {}", result.explanation);
    }
}

/// Removes the DDP Segment Length and the copied headers from a Terminate. Sets the bits M, D and
/// R, which announce them, to zero.
fn remove_headers(ulpdu: &mut Vec<u8>) {
    ulpdu.truncate(CONTROL + CONTROL_LEN);
    ulpdu[CONTROL + 2] = 0;
}

#[tokio::test]
async fn a_terminate_without_the_ddp_header_fails_the_cases_about_figure_10() {
    for (key, violated) in [
        ("rdmap/4.8-terminate/layout[kind=operation]", ["RDMAP-4.8-39", "RDMAP-4.8-40"]),
        ("rdmap/4.8-terminate/layout[kind=untagged]", ["RDMAP-4.8-39", "RDMAP-4.8-40"]),
        ("rdmap/4.8-terminate/ddp-error[kind=untagged]", ["RDMAP-4.8-16", "DDP-7.1-17"]),
    ] {
        let result = result_of(Program::Rping, key, remove_headers).await;
        assert_eq!(result.verdict, Verdict::Fail, "{key}: {}", result.explanation);
        for row in violated {
            assert!(result.failing().any(|failing| failing.as_str() == row), "{key}, {row}: {}", result.explanation);
        }
    }
}

/// Figure 10 requires no header for an error of MPA. For a Remote Operation Error, it requires the
/// header "if possible", so the monitor accepts a Terminate without the header.
#[tokio::test]
async fn a_terminate_without_the_ddp_header_fails_no_other_case() {
    for (program, key) in [
        (Program::Rping, "rdmap/4.8-terminate/layout[kind=crc]"),
        (Program::Echo, "rdmap/7.2-messages/version[opcode=3,version=2]"),
        (Program::Echo, "rdmap/7.2-messages/opcode[opcode=13]"),
    ] {
        let result = result_of(program, key, remove_headers).await;
        assert_eq!(result.verdict, Verdict::Pass, "{key}: {}", result.explanation);
        assert_eq!(result.failing().collect::<Vec<_>>(), [], "{key}");
    }
}
