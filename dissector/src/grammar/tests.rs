//! Tests the names, values and octets of fields. The expected results follow the tables of the
//! specifications.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::sdp::FieldOrder;

use super::*;
use crate::testing::hex;
use crate::unit::Carrier;

/// Collects each field as `name = value @ range`.
#[derive(Default)]
struct ReportedFields(Vec<String>);

impl Visitor for ReportedFields {
    fn field(&mut self, field: &'static Field, value: Value<'_>, at: std::ops::Range<usize>) {
        let value = match value {
            Value::Uint(value) => format!("{value:#x}"),
            Value::Octets(octets) => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
            Value::Text(text) | Value::PeerText(text) => text.to_owned(),
            Value::PeerTexts(texts) => texts.join(", "),
            Value::Address(address) => address.to_string(),
            Value::Pointers(pointers) => format!("{pointers:?}"),
        };
        self.0.push(format!("{} = {value} @ {}..{}", field.name, at.start, at.end));
    }
}

fn report(part: Part<'_>, grammar: impl FnOnce(&mut Reader<'_, '_, ReportedFields>)) -> Vec<String> {
    let mut fields = ReportedFields::default();
    grammar(&mut Reader::new(part, 0, &mut fields));
    fields.0
}

fn segment(ulpdu: &str) -> (Vec<String>, Option<usize>) {
    let octets = hex(ulpdu);
    let mut payload = None;
    let fields = report(Part::complete(&octets), |reader| payload = ddp::segment(reader).map(|rest| rest.len()));
    (fields, payload)
}

/// Asserts that the fields include the lines of `expected`, in this order.
fn assert_has(fields: &[String], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found: Vec<&str> = fields.iter().map(String::as_str).filter(|line| expected.contains(line)).collect();
    assert_eq!(found, expected, "{fields:#?}");
}

/// By RFC 6581 section 9, the private data starts with two words of 16 bits if S is set. The first
/// word has A, B and IRD. The second word has C, D and ORD.
#[test]
fn reads_a_request_of_revision_2() {
    let octets = [b"MPA ID Req Frame".as_slice(), &hex("50 02 0006 8001 c002 aabb")].concat();
    let fields = report(Part::complete(&octets), |reader| mpa::startup(StartupKind::Request, reader));
    assert_has(
        &fields,
        "iwarp_mpa.marker_flag = 0x0 @ 16..17
         iwarp_mpa.crc_flag = 0x1 @ 16..17
         iwarp_mpa.rej_flag = 0x0 @ 16..17
         iwarp_mpa.s_flag = 0x1 @ 16..17
         iwarp_mpa.rev = 0x2 @ 17..18
         iwarp_mpa.pdlength = 0x6 @ 18..20
         iwarp_mpa.a_flag = 0x1 @ 20..22
         iwarp_mpa.b_flag = 0x0 @ 20..22
         iwarp_mpa.ird = 0x1 @ 20..22
         iwarp_mpa.c_flag = 0x1 @ 22..24
         iwarp_mpa.d_flag = 0x1 @ 22..24
         iwarp_mpa.ord = 0x2 @ 22..24
         iwarp_mpa.privatedata = 8001c002aabb @ 20..26",
    );
}

/// By RFC 5044 section 7.1.1, the S bit belongs to Res in revision 1, and the frame has no IRD and
/// ORD.
#[test]
fn reads_a_reply_of_revision_1() {
    let octets = [b"MPA ID Rep Frame".as_slice(), &hex("b0 01 0004 8001c002")].concat();
    let fields = report(Part::complete(&octets), |reader| mpa::startup(StartupKind::Reply, reader));
    assert_has(
        &fields,
        "iwarp_mpa.marker_flag = 0x1 @ 16..17
         iwarp_mpa.crc_flag = 0x0 @ 16..17
         iwarp_mpa.rej_flag = 0x1 @ 16..17
         iwarp_mpa.res = 0x10 @ 16..17
         iwarp_mpa.privatedata = 8001c002 @ 20..24",
    );
    assert!(!fields.iter().any(|field| field.contains("s_flag") || field.contains("ird")), "{fields:#?}");
}

/// The segment is an RDMA Write as in RFC 5041 Figure 3 and RFC 5040 section 4.1.
#[test]
fn reads_a_tagged_segment() {
    let (fields, payload) = segment("c140 11223344 0000000000001000 0102030405");
    let all = "iwarp_ddp.tagged_flag = 0x1 @ 0..1
        iwarp_ddp.last_flag = 0x1 @ 0..1
        iwarp_ddp.rsvd = 0x0 @ 0..1
        iwarp_ddp.dv = 0x1 @ 0..1
        iwarp_rdma.version = 0x1 @ 1..2
        iwarp_rdma.rsv = 0x0 @ 1..2
        iwarp_rdma.opcode = 0x0 @ 1..2
        iwarp_ddp.stag = 0x11223344 @ 2..6
        iwarp_ddp.tagged_offset = 0x1000 @ 6..14";
    assert_has(&fields, all);
    assert_eq!((fields.len(), payload), (9, Some(5)));
}

/// By RFC 5040 section 4.4, SinkSTag, SinkTO, RDMARDSZ, SrcSTag and SrcTO follow an untagged
/// header.
#[test]
fn reads_a_read_request() {
    let (fields, payload) = segment(
        "4141 00000000 00000001 00000002 00000000  00000100 0000000000001000 00000040 00000200 0000000000002000 ff",
    );
    assert_has(
        &fields,
        "iwarp_rdma.reserved = 00000000 @ 2..6
         iwarp_ddp.qn = 0x1 @ 6..10
         iwarp_ddp.msn = 0x2 @ 10..14
         iwarp_ddp.mo = 0x0 @ 14..18
         iwarp_rdma.sinkstag = 0x100 @ 18..22
         iwarp_rdma.sinkto = 0x1000 @ 22..30
         iwarp_rdma.rdmardsz = 0x40 @ 30..34
         iwarp_rdma.srcstag = 0x200 @ 34..38
         iwarp_rdma.srcto = 0x2000 @ 38..46",
    );
    assert_eq!(payload, Some(1));
}

/// By RFC 5040 section 4.8, a Terminate has exactly the parts that HdrCt announces. The test also
/// reads the Invalidate STag of a Send with Invalidate.
#[test]
fn a_terminate_has_only_the_parts_that_hdrct_announces() {
    let header = "4147 00000000 00000002 00000001 00000000";
    let (fields, payload) = segment(&format!("{header} 1100 c000 000f c140 deadbeef 0000000000002000"));
    assert_has(
        &fields,
        "iwarp_rdma.term_layer = 0x1 @ 18..19
         iwarp_rdma.term_etype = 0x1 @ 18..19
         iwarp_rdma.term_errcode = 0x0 @ 19..20
         iwarp_rdma.term_hdrct_m = 0x1 @ 20..22
         iwarp_rdma.hdrct_d = 0x1 @ 20..22
         iwarp_rdma.hdrct_r = 0x0 @ 20..22
         iwarp_rdma.term_ddp_seg_len = 0xf @ 22..24
         iwarp_rdma.term_ddp_h = c140deadbeef0000000000002000 @ 24..38",
    );
    assert_eq!(payload, Some(0));
    let (fields, payload) = segment(&format!("{header} 2002 0000 aabb"));
    assert!(!fields.iter().any(|field| field.contains("term_ddp")), "{fields:#?}");
    assert_eq!(payload, Some(2));
    let (fields, _) = segment("4144 cafe0001 00000000 00000001 00000000");
    assert_has(&fields, "iwarp_rdma.inval_stag = 0xcafe0001 @ 2..6");
}

/// By RFC 7306 section 5.2.1, the same octets are Add Data in a FetchAdd, and Swap Data in a
/// CmpSwap.
#[test]
fn atomic_requests_differ_by_their_opcode() {
    let request = |code: &str| {
        let words =
            "00000007 00000300 0000000000003000 0000000000000001 0000000000000002 0000000000000003 0000000000000004";
        segment(&format!("414a 00000000 00000001 00000001 00000000  0000000{code} {words}")).0
    };
    assert_has(
        &request("0"),
        "iwarp_rdma.atomic.opcode = 0x0 @ 18..22
         iwarp_rdma.atomic.request_identifier = 0x7 @ 22..26
         iwarp_rdma.atomic.remote_stag = 0x300 @ 26..30
         iwarp_rdma.atomic.remote_tagged_offset = 0x3000 @ 30..38
         iwarp_rdma.atomic.add_data = 0x1 @ 38..46
         iwarp_rdma.atomic.add_mask = 0x2 @ 46..54
         iwarp_rdma.atomic.compare_data = 0x3 @ 54..62
         iwarp_rdma.atomic.compare_mask = 0x4 @ 62..70",
    );
    assert_has(
        &request("2"),
        "iwarp_rdma.atomic.opcode = 0x2 @ 18..22
         iwarp_rdma.atomic.swap_data = 0x1 @ 38..46
         iwarp_rdma.atomic.swap_mask = 0x2 @ 46..54",
    );
}

/// A field that was not captured is not reported, but the fields after it are reported.
#[test]
fn missing_octets_are_no_fields() {
    let octets = hex("4143 00000000 00000000 00000001 00000000 0102");
    let mut known = vec![1; octets.len()];
    known[12] = 0;
    let fields_with = |known: &[u8]| {
        report(Part::with_known(&octets, known), |reader| {
            ddp::segment(reader);
        })
    };
    let fields = fields_with(&known);
    assert_has(&fields, "iwarp_ddp.qn = 0x0 @ 6..10\niwarp_ddp.mo = 0x0 @ 14..18");
    assert!(!fields.iter().any(|field| field.contains("msn")), "{fields:#?}");
    // If the opcode was not captured, the layout of the rest of the header is unknown.
    known[1] = 0;
    assert_eq!(fields_with(&known).len(), 4);
}

/// Reads the same SDP message twice: first with its header fields in figure order, then in mirrored
/// order. Section 6.1 of the SDP draft defines the header.
#[test]
fn reads_sdp_in_both_orders() {
    let figure = hex("0008 00 ff 00000011 00000003 00000002 2a");
    let mirrored = hex("ff 00 0008 00000011 00000003 00000002 2a");
    for (octets, order, places) in
        [(&figure, FieldOrder::Figure, [(0, 2), (3, 4)]), (&mirrored, FieldOrder::Mirrored, [(2, 4), (0, 1)])]
    {
        let fields = report(Part::complete(octets), |reader| {
            let payload = sdp::message(Carrier::Send, order, reader);
            assert_eq!(payload.map(|rest| rest.len()), Some(1));
        });
        let [bufs, mid] = places;
        assert_has(
            &fields,
            &format!(
                "iwarp_sdp.bufs = 0x8 @ {}..{}
                 iwarp_sdp.mid = 0xff @ {}..{}
                 iwarp_sdp.len = 0x11 @ 4..8
                 iwarp_sdp.mseq = 0x3 @ 8..12
                 iwarp_sdp.mseqack = 0x2 @ 12..16",
                bufs.0, bufs.1, mid.0, mid.1
            ),
        );
    }
}

/// By section 7.3 of the SDP draft, the format of addresses depends on the field IPV.
#[test]
fn reads_a_port_mapper_message() {
    let octets = hex("14 08 0000 1389 9c41 000000000000004d
        0a000002 000000000000000000000000 0a000001 000000000000000000000000 ee");
    let fields = report(Part::complete(&octets), portmap::message);
    assert_has(
        &fields,
        "iwarp_pm.ver = 0x0 @ 0..1
         iwarp_pm.mt = 0x1 @ 0..1
         iwarp_pm.ipv = 0x4 @ 0..1
         iwarp_pm.pmtime = 0x8 @ 1..2
         iwarp_pm.apport = 0x1389 @ 4..6
         iwarp_pm.cpport = 0x9c41 @ 6..8
         iwarp_pm.assochandle = 0x4d @ 8..16
         iwarp_pm.cpipaddr = 10.0.0.2 @ 16..32
         iwarp_pm.apipaddr = 10.0.0.1 @ 32..48
         iwarp_pm.extra_len = 0x1 @ 48..48",
    );
}

#[test]
fn names_are_unique_and_masks_have_no_holes() {
    let mut names: Vec<&str> = fields().map(|field| field.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for field in fields().filter(|field| field.mask != 0) {
        let bits = field.mask >> field.mask.trailing_zeros();
        assert!((bits + 1).is_power_of_two(), "{}: {:#x}", field.name, field.mask);
    }
}
