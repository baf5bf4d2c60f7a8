//! Tests which requirements an expectation of an SDP connection reports, if the target's fault
//! violates other requirements. Another test checks the end of a driven socket.

use weft_core::RequirementId;
use weft_suites::Filter;
use weft_suites::model::Verdict;
use weft_suites::script::Suites;
use weft_suites::targets::Target;

use crate::common::run;

/// `row` is the requirement that the fault violates. `other` is a requirement of the case that the
/// fault does not violate.
#[tokio::test]
async fn reports_only_what_the_fault_violates() {
    for (deviation, case, row, other) in [
        // These are updates, not answers to a ChRcvBuf.
        ("sdp.mid-0f", "sdp/10-buffers/tester-asks", "SDP-6.1.1-17", "SDP-10.6-11"),
        ("sdp.short-header", "sdp/10-buffers/tester-asks", "SDP-6-1", "SDP-10.6-11"),
        ("sdp.flags-reserved", "sdp/10-buffers/tester-asks", "SDP-6.1.2-5", "SDP-10.6-11"),
        // The target connects, and sends a malformed Hello.
        ("sdp.hello-mid", "sdp/13.1-suspension/resumed", "SDP-6.2.1-3", "SDP-13.1.1-7"),
        ("sdp.hello-long", "sdp/13.1-suspension/resumed", "SDP-6.2.1-4", "SDP-13.1.1-7"),
        // The target ends TCP after an RDMA Write.
        ("sdp.write-after-susp-comm-ack", "sdp/13.1-suspension/with-data", "SDP-13.1.1-13", "SDP-13.1.1-15"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let target = Target::builtin().with_deviations([deviation]).unwrap();
        let (report, _) = run(target, Suites::embedded().unwrap(), Filter::of([case]), out.path()).await;
        let [result] = report.results.as_slice() else { panic!("{} results", report.results.len()) };
        let failing: Vec<&str> = result.failing().map(RequirementId::as_str).collect();
        assert!(failing.contains(&row), "{deviation}: {failing:?}, {}", result.explanation);
        assert!(!failing.contains(&other), "{deviation}: {failing:?}, {}", result.explanation);
    }
}

/// The Data with the second command and the DisConn arrive while the target's user waits.
const ENDS_DURING_WAIT: &str = "case { id = 'sdp/x/one', version = 1, title = 'One', requirements = { 'SDP-8.2.1-3' },
  capabilities = { 'sdp-drive' },
  run = function(t)
    local s = t:sdp {}
    s:command 'wait 50'
    s:command 'send 5'
    s:send(sdp.dis_conn {})
    s:collect(5, { requirement = 'SDP-8.2.1-3', overdue_fails = true })
    s:expect 'dis_conn'
    s:connection():reset()
  end }
";

#[tokio::test]
async fn a_driven_socket_executes_all_commands_before_the_end_of_stream() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("suites");
    std::fs::create_dir_all(scripts.join("sdp")).unwrap();
    std::fs::write(scripts.join("sdp/x.lua"), ENDS_DURING_WAIT).unwrap();
    let suites = Suites::from_folder(&scripts).unwrap();
    let (report, _) = run(Target::builtin(), suites, Filter::everything(), &folder.path().join("out")).await;
    let [result] = report.results.as_slice() else { panic!("{} results", report.results.len()) };
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
}
