//! Tests of the pages of captures and of their API.

use std::path::PathBuf;

use super::*;

/// A capture of the source tree.
pub(super) fn capture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(name)
}

/// A server with the folder of captures `folder/capture_folder`. This folder has copies of the
/// named captures of the source tree.
pub(super) async fn capture_folder(folder: &Path, names: &[&str]) -> Site {
    let capture_folder = folder.join("capture_folder");
    std::fs::create_dir(&capture_folder).unwrap();
    for name in names {
        std::fs::copy(capture_path(name), capture_folder.join(name.rsplit('/').next().unwrap())).unwrap();
    }
    let options = CaptureOptions { folder: Some(capture_folder), ..CaptureOptions::default() };
    site_with(folder, Access::default(), None, options).await
}

/// The links on a page that begin with `begin`.
fn links(html: &str, begin: &str) -> Vec<String> {
    let all = html.split("href=\"").skip(1).filter_map(|part| part.split('"').next());
    all.filter(|href| href.starts_with(begin)).map(|href| href.replace("&#38;", "&")).collect()
}

/// Returns the page after the capture was read.
pub(super) async fn read(site: &Site, path: &str) -> (StatusCode, String) {
    loop {
        let answer = site.get(path).await;
        let status = answer.status();
        if status != StatusCode::SERVICE_UNAVAILABLE {
            return (status, String::from_utf8(octets(answer).await).unwrap());
        }
        assert_eq!(answer.headers()[header::RETRY_AFTER], "1", "{path}");
    }
}

async fn page(site: &Site, path: &str) -> String {
    let (status, page) = read(site, path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {page}");
    page
}

/// The address of the only capture in the folder.
pub(super) async fn only(site: &Site) -> String {
    links(&site.text("/captures").await, "/captures/").remove(0)
}

/// The numbers of the packets on a page.
fn numbers(html: &str) -> Vec<u64> {
    let packets = links(html, "/captures/").into_iter().filter(|href| href.contains("/packets/"));
    packets.filter_map(|href| href.split("/packets/").nth(1)?.split('?').next()?.parse().ok()).collect()
}

#[tokio::test]
async fn links_lead_from_the_folder_to_the_bytes_of_a_field() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-crc.pcap"]).await;
    let capture = only(&site).await;
    let list = page(&site, &capture).await;
    assert_eq!(numbers(&list), (1..=52).collect::<Vec<_>>());
    assert!(list.contains("MPA Request") && list.contains("10.1.0.2:38499") && list.contains("TCP SYN"), "{list}");
    // The list of the folder also shows what was read in the background.
    let capture_folder = site.text("/captures").await;
    assert!(capture_folder.contains("<td class=\"number\">52</td>"), "{capture_folder}");

    let request = page(&site, &format!("{capture}/packets/6")).await;
    // The key of the MPA Request follows the headers of Ethernet, IP, and TCP with 12 bytes of
    // options.
    assert!(request.contains("MPA ID Req Frame") && request.contains("data-at=\"66-82\""), "{request}");
    assert!(request.contains("<td id=\"o66\">4d</td>"), "{request}");
    assert_eq!(
        links(&request, &format!("{capture}/packets/")),
        [format!("{capture}/packets/5"), format!("{capture}/packets/7")]
    );
    let file = site.get(&format!("{capture}/file")).await;
    assert_eq!(file.headers()[header::CONTENT_DISPOSITION], "attachment; filename=\"rping-crc.pcap\"");
    assert_eq!(octets(file).await, std::fs::read(capture_path("siw/rping-crc.pcap")).unwrap());
    assert_eq!(site.get(&format!("{capture}/packets/53")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_filter_shows_its_packets_or_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-crc.pcap"]).await;
    let capture = only(&site).await;
    // tshark -r rping-crc.pcap -Y 'iwarp_rdma.opcode == 0' -T fields -e frame.number
    let writes = format!("{capture}?filter=iwarp_rdma.opcode+%3D%3D+0");
    let list = page(&site, &writes).await;
    assert_eq!(numbers(&list), [16, 26, 36, 47]);
    // The links to the previous and next packet respect the filter.
    let packet = page(&site, &links(&list, &format!("{capture}/packets/"))[1]).await;
    assert_eq!(numbers(&packet), [16, 36]);
    assert_eq!(links(&packet, &format!("{capture}?")).len(), 1, "{packet}");
    assert!(page(&site, &format!("{capture}?filter=frame.number%3E99")).await.contains("No packet passes the filter."));

    let (status, wrong) = read(&site, &format!("{capture}?filter=tcp.steam+%3D%3D+1+%26%26+%22%3Cb%3E")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.contains("aria-invalid=\"true\"") && wrong.contains("column"), "{wrong}");
    assert!(!wrong.contains("<b>") && numbers(&wrong).is_empty(), "{wrong}");
    let go = site.get(&format!("{capture}?number=7&filter=tcp")).await;
    assert_eq!(go.headers()[header::LOCATION], format!("{capture}/packets/7?filter=tcp"));
}

#[tokio::test]
async fn long_lists_have_pages() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/host-matrix.pcap"]).await;
    let capture = only(&site).await;
    let (mut all, mut next) = (Vec::new(), Some(capture.clone()));
    while let Some(address) = next {
        let list = page(&site, &address).await;
        all.extend(numbers(&list));
        next = list.split("rel=\"next\" href=\"").nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    }
    assert_eq!(all, (1..=627).collect::<Vec<_>>());
    let filtered = page(&site, &format!("{capture}?filter=tcp&from=100")).await;
    assert!(filtered.contains(&format!("href=\"{capture}?filter=tcp&#38;from=200\"")), "{filtered}");
    assert_eq!(numbers(&page(&site, &format!("{capture}?from=99999")).await), (601..=627).collect::<Vec<_>>());
}

#[tokio::test]
async fn shows_findings_connections_ladder_operations_and_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/violations-6-kinds-crc.pcap"]).await;
    let capture = only(&site).await;
    let findings = page(&site, &format!("{capture}/findings")).await;
    let packet = links(&findings, &format!("{capture}/packets/")).remove(0);
    assert!(findings.contains("<td class=\"sev-error\">error</td>"), "{findings}");
    let packet = page(&site, &packet).await;
    assert!(packet.contains("class=\"sev-error\"") && packet.contains("Expected "), "{packet}");
    let errors = page(&site, &format!("{capture}/findings?severity=error")).await;
    assert!(errors.contains("; only lines with a finding of severity error."), "{errors}");

    let list = page(&site, &capture).await;
    assert!(list.contains(&format!("<a href=\"{capture}/connections/0\">Connection 0</a>, ")), "{list}");
    let connections = page(&site, &format!("{capture}/connections")).await;
    assert!(connections.contains("<td class=\"sev-error\">10.1.0."), "{connections}");
    let one = links(&connections, &format!("{capture}/connections/")).remove(0);
    let ladder = page(&site, &one).await;
    assert!(ladder.contains("<p class=\"outcome\"><strong class=\"sev-error\">10.1.0."), "{ladder}");
    assert!(ladder.contains("<svg class=\"ladder\"") && !links(&ladder, &format!("{capture}/packets/")).is_empty());
    let of_it = links(&connections, &format!("{capture}?filter=")).remove(0);
    assert!(!numbers(&page(&site, &of_it).await).is_empty());
    assert!(page(&site, &format!("{capture}/statistics")).await.contains("FPDUs"));
    assert_eq!(site.get(&format!("{capture}/connections/99999")).await.status(), StatusCode::NOT_FOUND);

    std::fs::copy(capture_path("siw/probe-ops.pcap"), folder.path().join("capture_folder/ops.pcap")).unwrap();
    let other = links(&site.text("/captures").await, "/captures/").into_iter().find(|href| *href != capture).unwrap();
    let operations = page(&site, &format!("{other}/operations")).await;
    assert!(operations.contains("<td>Read</td>"), "{operations}");
}

/// Returns the document at this address of the API.
async fn document(site: &Site, path: &str) -> serde_json::Value {
    let (status, text) = read(site, path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// Frame 13 of this capture has a malformed Terminate, which violates several requirements.
#[tokio::test]
async fn a_problem_is_one_line_with_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-size-mismatch-terminate.pcap"]).await;
    let capture = only(&site).await;
    let answer = document(&site, &format!("/api{capture}/problems")).await;
    let problems = answer["problems"].as_array().unwrap();
    let terminate = problems.iter().find(|problem| problem["requirement"] == "RDMAP-4.8-37").unwrap();
    assert_eq!((&terminate["packets"], &terminate["count"]), (&serde_json::json!([13]), &1.into()));
    let rules = terminate["requirements"].as_array().unwrap().len();
    assert!(rules > 1, "{answer}");
    let findings = document(&site, &format!("/api{capture}/findings")).await;
    let of_problem = |finding: &&serde_json::Value| finding["problem"] == terminate["problem"];
    assert!(findings["findings"].as_array().unwrap().iter().filter(of_problem).count() >= rules, "{findings}");

    let html = page(&site, &format!("{capture}/findings")).await;
    assert_eq!(html.matches("<code>RDMAP-4.8-37</code>").count(), 1, "{html}");
    assert!(html.contains(&format!("<summary>{} more rule", rules - 1)), "{html}");
    let total = answer["total"].as_u64().unwrap();
    assert!(html.contains(&format!(": {total} problem")) && html.contains(&format!(", {total} problem")), "{html}");
    assert_eq!(document(&site, &format!("/api{capture}")).await["problems"], total);
    // The page of the packet begins with the root.
    let packet = page(&site, &format!("{capture}/packets/13")).await;
    let (_, listed) = packet.split_once("<summary>Findings: ").unwrap();
    let (counts, listed) = listed.split_once("</summary>").unwrap();
    assert!(counts.ends_with(" rules in 1 problem"), "{packet}");
    assert!(listed.split("<code>").nth(1).unwrap().starts_with("RDMAP-4.8-37<"), "{packet}");
}

#[tokio::test]
async fn the_api_explains_connections_and_exchanges() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-size-mismatch-terminate.pcap"]).await;
    let capture = only(&site).await;
    let answer = document(&site, &format!("/api{capture}/answers")).await;
    assert_eq!((&answer["total"], &answer["unexplained"]), (&1.into(), &0.into()));
    let one = &answer["answers"][0];
    let text = one["text"].as_str().unwrap();
    assert!(text.starts_with("connection 0, 10.1.0.2:") && text.contains("(frame 13)"), "{text}");
    assert_eq!((&one["is_failure"], &one["facts"]["cause"]), (&true.into(), &"own_read_request".into()));
    // The page of the connection has the same sentences.
    let html = page(&site, &format!("{capture}/connections/0")).await;
    assert!(html.contains("(frame 13)"), "{html}");
    let further = document(&site, &format!("/api{capture}/answers?from=1")).await;
    assert_eq!((&further["total"], &further["answers"]), (&1.into(), &serde_json::json!([])));

    let denied = capture_path("causes/portmap-denied-plain.pcap");
    std::fs::copy(denied, folder.path().join("capture_folder/denied.pcap")).unwrap();
    let other = links(&site.text("/captures").await, "/captures/").into_iter().find(|href| *href != capture).unwrap();
    let answer = document(&site, &format!("/api{other}/answers")).await;
    let text = answer["exchanges"][0]["text"].as_str().unwrap();
    assert!(text.contains("the port mapper denies "), "{answer}");
}

/// The frames of the commands on a page.
fn command_frames(html: &str) -> Vec<u64> {
    let rows = html.split("<th scope=\"row\" class=\"number\">").skip(1);
    rows.map(|row| row.split(['>', '<']).nth(2).unwrap().parse().unwrap()).collect()
}

/// `cli/tests/captures/io.rs` expects the same frames and numbers of `weft io`.
#[tokio::test]
async fn storage_commands_are_sorted_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["storage/nvme-discover.pcap"]).await;
    let capture = only(&site).await;
    let list = page(&site, &capture).await;
    assert!(list.contains(&format!("<a href=\"{capture}/io\">Commands</a>")), "{list}");
    let all = page(&site, &format!("{capture}/io")).await;
    assert!(all.contains("<p>16 commands, 1 not answered.") && all.contains("Commands 1 to 16 of 16."), "{all}");
    assert_eq!(command_frames(&all), [8, 12, 14, 16, 18, 20, 22, 24, 26, 39, 41, 42, 51, 56, 63, 65]);
    assert!(all.contains("<svg class=\"trend\"") && all.contains("Outstanding commands"), "{all}");
    // The Identify command in frame 26, its latency with the three parts, and the Write that serves
    // it.
    let (_, identify) = all.split_once("/packets/26\" data-line>").unwrap();
    let (identify, _) = identify.split_once("</tr>").unwrap();
    let cells = ["44.874", "44.854", "0.010", "0.010"].map(|text| format!("<td class=\"number\">{text}</td>"));
    assert!(identify.ends_with(&cells.concat()), "{identify}");
    assert!(identify.contains("Write of 4096 bytes, STag 0x18ad2002, "), "{identify}");
    assert!(identify.contains(&format!("(<a href=\"{capture}/packets/29\">packet 29</a>)")), "{identify}");

    let frames = async |query: &str| command_frames(&page(&site, &format!("{capture}/io?{query}")).await);
    let slowest = frames("sort=latency").await;
    assert_eq!((&slowest[..3], slowest.last()), (&[56, 42, 51][..], Some(&41)));
    assert_eq!(frames("sort=bytes").await[..4], [26, 42, 56, 8]);
    assert_eq!(frames("show=unanswered").await, [41]);
    assert_eq!(frames("kind=Asynchronous+Event+Request&show=all&sort=time").await, [41]);
    let none = page(&site, &format!("{capture}/io?show=errors")).await;
    assert!(none.contains("No command matches.") && command_frames(&none).is_empty(), "{none}");
    // The statistics of a kind lead to its commands.
    let of_kind = links(&all, &format!("{capture}/io?kind=Identify")).remove(0);
    assert!(command_frames(&page(&site, &of_kind).await).contains(&26));
    assert_eq!(site.get(&format!("{capture}/io?sort=size")).await.status(), StatusCode::BAD_REQUEST);

    let answer = document(&site, &format!("/api{capture}/io?sort=latency&limit=2")).await;
    let listed: Vec<&serde_json::Value> =
        answer["commands"].as_array().unwrap().iter().map(|command| &command["frame"]).collect();
    assert_eq!(listed, [&serde_json::json!(56), &serde_json::json!(42)]);
    assert_eq!((&answer["total"], &answer["left_out"]), (&16.into(), &0.into()));
    assert_eq!((&answer["summary"]["commands"], &answer["outstanding"]["most"]), (&16.into(), &2.into()));
    assert_eq!(answer["statistics"].as_array().unwrap().len(), 6);
    assert_eq!(site.get(&format!("/api{capture}/io?limit=0")).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_capture_without_storage_commands_names_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-crc.pcap"]).await;
    let capture = only(&site).await;
    let list = page(&site, &capture).await;
    assert!(!list.contains(">Commands</a>"), "{list}");
    let empty = page(&site, &format!("{capture}/io")).await;
    assert!(empty.contains("no storage commands") && empty.contains("<p>Next step: "), "{empty}");
    assert_eq!(document(&site, &format!("/api{capture}/io")).await["commands"], serde_json::json!([]));
}

/// If the capture has more connections than weft explains, the user has to know how many.
#[tokio::test]
async fn connections_without_an_answer_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &[]).await;
    std::fs::write(folder.path().join("capture_folder/crowd.pcap"), crowd::crowd()).unwrap();
    let capture = only(&site).await;
    let answer = document(&site, &format!("/api{capture}/answers?limit=1")).await;
    let unexplained = answer["unexplained"].as_u64().unwrap();
    assert!(unexplained > 1 && answer["total"].as_u64().unwrap() >= 1024, "{answer}");
    let counted = format!("Not explained, because the capture has too many connections: {unexplained} connections.");
    for below in ["", "/connections"] {
        let html = page(&site, &format!("{capture}{below}")).await;
        assert!(html.contains(&counted), "{below}: {html}");
    }
    let one = page(&site, &format!("{capture}/connections/5000")).await;
    assert!(one.contains("This connection is not explained"), "{one}");
}

#[tokio::test]
async fn the_live_page_reports_new_packets() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-crc.pcap"]).await;
    let capture = only(&site).await;
    let live = site.text(&format!("{capture}/live")).await;
    assert!(live.contains(&format!("data-events=\"{capture}/events\"")), "{live}");
    let answer = site.get(&format!("{capture}/events")).await;
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut stream = answer.into_body().into_data_stream();
    let mut received = String::new();
    let grown = "\"packets\":53";
    let mut file =
        std::fs::OpenOptions::new().append(true).open(folder.path().join("capture_folder/rping-crc.pcap")).unwrap();
    let mut has_grown = false;
    while !received.contains(grown) {
        let chunk =
            tokio::time::timeout(LONG, stream.next()).await.expect("it continues").expect("it continues").unwrap();
        received.push_str(std::str::from_utf8(&chunk).unwrap());
        if received.contains("\"packets\":52") && !has_grown {
            has_grown = true;
            // Append the first frame to the file again.
            let first = &std::fs::read(capture_path("siw/rping-crc.pcap")).unwrap()[24..24 + 16 + 42];
            std::io::Write::write_all(&mut file, first).unwrap();
        }
    }
    assert!(received.contains("MPA Request") && received.contains("\"number\":53"), "{received}");
    site.stop.send_replace(true);
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn shows_the_capture_of_a_case() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    assert!(site.text("/captures").await.contains("has no folder of captures"));
    let case = case_page(&report.run.id, &report.results[0].key);
    let capture = links(&site.text(&case).await, "/captures/").remove(0);
    let list = page(&site, &capture).await;
    assert!(list.contains("MPA Request") && links(&list, "/runs/").contains(&case), "{list}");
    page(&site, &format!("{capture}/packets/4")).await;
    let run = &report.run.id;
    for unknown in
        ["none~0", &format!("{run}~99999"), &format!("{run}~-1"), &format!("{run}~x"), "~", "~~0", "%2e%2e~0"]
    {
        assert_eq!(site.get(&format!("/captures/{unknown}")).await.status(), StatusCode::NOT_FOUND, "{unknown}");
    }
}

#[tokio::test]
async fn serves_no_file_outside_the_folder_of_captures() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(capture_path("siw/rping-crc.pcap"), folder.path().join("secret.pcap")).unwrap();
    let site = capture_folder(folder.path(), &["siw/rping-crc.pcap"]).await;
    std::os::unix::fs::symlink(folder.path().join("secret.pcap"), folder.path().join("capture_folder/link.pcap"))
        .unwrap();
    for id in [
        "rping-crc.pcap",
        "..%2Fsecret.pcap",
        "../secret.pcap",
        "%2e%2e%2fsecret.pcap",
        "link.pcap",
        "%00",
        "%FF",
        "%2Fetc%2Fpasswd",
        "..",
        "0000000000000000",
    ] {
        for below in ["", "/packets/1", "/file", "/findings", "/connections/0", "/operations", "/statistics"] {
            let status = site.get(&format!("/captures/{id}{below}")).await.status();
            assert!(status.is_client_error(), "{id}{below}: {status}");
        }
    }
    let capture = only(&site).await;
    for query in
        ["?from=-1", "?from=x", "?from=99999999999999999999", "?number=x", "?number=-1", "?filter=%FF", "?filter=%00"]
    {
        let (status, _) = read(&site, &format!("{capture}{query}")).await;
        assert!(status.is_client_error(), "{query}: {status}");
    }
    for number in ["0", "-1", "x", "99999999999999999999", "%00", "1%2F..%2F2"] {
        let (status, _) = read(&site, &format!("{capture}/packets/{number}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{number}");
    }
}

#[tokio::test]
async fn pages_of_captures_have_no_inline_code() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &["siw/violations-6-kinds-crc.pcap"]).await;
    let hostile = folder.path().join("capture_folder/<img src=x onerror=alert(1)>.pcap");
    std::fs::write(hostile, "no capture").unwrap();
    let captures = links(&site.text("/captures").await, "/captures/");
    for capture in captures {
        for below in ["", "/packets/8", "/findings", "/connections", "/connections/0", "/operations", "/statistics"] {
            let (_, html) = read(&site, &format!("{capture}{below}")).await;
            let html = html.replace("http://www.w3.org/2000/svg", "");
            for inline in [" style=", "<style", "<script>", "javascript:", " onclick=", "<img", "http://", "https://"] {
                assert!(!html.contains(inline), "{capture}{below} has {inline}");
            }
        }
    }
    assert!(!site.text("/captures").await.contains("<img"));
}

#[tokio::test]
async fn shows_damaged_captures_as_far_as_possible() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &[]).await;
    let good = std::fs::read(capture_path("siw/rping-crc.pcap")).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for cut in [0, 1, 4, 23, 24, 39, 40, 41, good.len() / 2, good.len() - 1] {
        files.push((format!("cut-{cut}"), good[..cut].to_vec()));
    }
    // Each of these files has one huge value: the length of a record, the length of its frame on
    // the wire, the link type, or the magic number.
    for (name, at) in [("record", 32), ("wire", 36), ("link", 20), ("magic", 0)] {
        let mut wrong = good.clone();
        wrong[at..at + 4].copy_from_slice(&[0xff; 4]);
        files.push((format!("huge-{name}"), wrong));
    }
    // Add a pcapng with a block length of 4 GiB, and a pcapng without a description of its
    // interface.
    files.push((
        "block".into(),
        [&[0x0a, 0x0d, 0x0d, 0x0a, 0xfc, 0xff, 0xff, 0xff, 0x4d, 0x3c, 0x2b, 0x1a][..], &[0; 64]].concat(),
    ));
    for step in [7, 31, 97] {
        let mut flipped = good.clone();
        for at in (24..flipped.len()).step_by(step) {
            flipped[at] ^= 0x81;
        }
        files.push((format!("flipped-{step}"), flipped));
    }
    for (name, octets) in files {
        let path = folder.path().join(format!("capture_folder/{name}.pcap"));
        std::fs::write(&path, octets).unwrap();
        let capture = only(&site).await;
        for below in [
            "",
            "?filter=frame",
            "/packets/1",
            "/findings",
            "/connections",
            "/connections/0",
            "/operations",
            "/statistics",
        ] {
            let (status, page) = read(&site, &format!("{capture}{below}")).await;
            assert!(status == StatusCode::OK || status.is_client_error(), "{name}{below}: {status} {page}");
        }
        site.text("/captures").await;
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn a_capture_that_killed_the_server_is_read_only_for_a_user() {
    let folder = tempfile::tempdir().unwrap();
    let before = capture_folder(folder.path(), &["siw/rping-crc.pcap"]).await;
    let capture = only(&before).await;
    page(&before, &capture).await;
    drop(before);
    // Leave the mark file of a server that was killed while it read the capture.
    let folder_of_captures = folder.path().join("capture_folder");
    let meta = std::fs::metadata(folder_of_captures.join("rping-crc.pcap")).unwrap();
    let changed = meta.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let mark = folder_of_captures.join(format!(".weft-reading-{}", capture.trim_start_matches("/captures/")));
    std::fs::write(&mark, format!("{} {changed}\n", meta.len())).unwrap();
    let options = CaptureOptions { folder: Some(folder_of_captures), ..CaptureOptions::default() };
    let site = site_with(folder.path(), Access::default(), None, options).await;
    for _ in 0..2 {
        let list = site.text("/captures").await;
        assert!(list.contains("earlier attempt to read the file failed") && !list.contains("Not read yet"), "{list}");
    }
    page(&site, &capture).await;
    assert!(!mark.exists());
    assert!(site.text("/captures").await.contains("<td class=\"number\">52</td>"));
}

/// On an empty page, the user has to know what is missing.
#[tokio::test]
async fn each_page_reports_what_was_not_read_or_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let site = capture_folder(folder.path(), &[]).await;
    std::fs::write(folder.path().join("capture_folder/crowd.pcap"), crowd::crowd()).unwrap();
    let capture = only(&site).await;
    let remarks = [
        "there were too many connections or waiting bytes at the same time, so weft dropped state: \
         weft interrupted its reading 10 times on connections with iWARP or SDP",
        "weft did not read 1 frame of IPsec ESP (encrypted)",
    ];
    for below in ["", "/findings", "/connections", "/operations", "/statistics"] {
        let page = page(&site, &format!("{capture}{below}")).await;
        for remark in remarks {
            assert!(page.contains(&format!("<p class=\"outcome\" role=\"note\">{remark}")), "{below}: {page}");
        }
    }
    let answer = octets(site.get(&format!("/api{capture}")).await).await;
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let reported: Vec<&str> = answer["remarks"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert!(reported.len() == 2 && reported[0].starts_with(remarks[0]) && reported[1] == remarks[1], "{answer}");
    assert!(page(&site, &format!("{capture}/live")).await.contains("id=\"remarks\""));
    let mut stream = site.get(&format!("{capture}/events")).await.into_body().into_data_stream();
    let mut events = String::new();
    while !remarks.iter().all(|remark| events.contains(remark)) {
        let chunk = tokio::time::timeout(LONG, stream.next()).await.expect("it continues").expect("it continues");
        events.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    site.stop.send_replace(true);
    while stream.next().await.is_some() {}
}
