//! Tests the mangler, which changes the bytes that an endpoint sends. The same seed always has the
//! same effect. Each kind of change has its own effect. All other bytes remain unchanged.

use super::*;

use weft_core::crc;
use weft_core::wire::mpa::Framing;

/// A Request (RFC 5044 section 7.1.1) with C=1, revision 1 and three bytes of private data.
const REQUEST: &[u8] = b"MPA ID Req Frame\x40\x01\x00\x03abc";
/// A zero-length Write and a zero-length Send with their CRCs. An independent table implementation
/// computed the CRCs.
const WRITE: &[u8] = b"\x00\x0e\xc1\x40\0\0\0\0\0\0\0\0\0\0\0\0\xa3\x05\x72\xab";
const SEND: &[u8] = b"\x00\x12\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x58\x7b\xe8\xc4";

const NOW: Instant = Instant::ORIGIN;

fn plan(text: &str, seed: u64) -> Mangler {
    Mangling::new(text.parse().unwrap(), seed).mangler(0)
}

fn stream() -> Vec<u8> {
    let mut stream = REQUEST.to_vec();
    (0..50).for_each(|_| stream.extend([WRITE, SEND].concat()));
    stream
}

/// Returns all outputs of the mangler with their times.
fn mangled(mut mangler: Mangler, pieces: &[&[u8]]) -> Vec<(Instant, Transmit)> {
    let mut out = Vec::new();
    let mut now = NOW;
    pieces.iter().for_each(|piece| mangler.push(now, Transmit::Octets(Bytes::copy_from_slice(piece))));
    mangler.push(now, Transmit::Fin);
    while let Some(at) = mangler.poll_timeout() {
        assert!(at >= now || out.is_empty(), "time runs backwards");
        now = now.max(at);
        out.extend(mangler.poll(now).map(|transmit| (now, transmit)));
    }
    assert!(mangler.is_idle());
    out
}

fn octets(out: &[(Instant, Transmit)]) -> Vec<u8> {
    let octets = out.iter().filter_map(|(_, transmit)| match transmit {
        Transmit::Octets(octets) => Some(octets.to_vec()),
        Transmit::Fin | Transmit::Reset => None,
    });
    octets.collect::<Vec<_>>().concat()
}

#[test]
fn nothing_planned_is_nothing_done() {
    let stream = stream();
    for size in [1, 7, 1000, stream.len()] {
        let pieces: Vec<&[u8]> = stream.chunks(size).collect();
        let out = mangled(Mangling::new(Plan::default(), 1).mangler(0), &pieces);
        assert_eq!(octets(&out), stream);
        assert_eq!(out.last().unwrap(), &(NOW, Transmit::Fin));
        // The start-up frame, each of 100 FPDUs, and FIN are one output each.
        assert_eq!(out.len(), 102);
    }
}

/// `@N` selects PDU number N. The start-up frame is PDU number 1, and the first FPDU is PDU number
/// 2. The result is the same for every seed and every connection.
#[test]
fn a_chosen_one_alone_is_mangled() {
    let stream = stream();
    for seed in 0..20 {
        for connection in 0..2 {
            let of = |text: &str| mangled(Mangling::new(text.parse().unwrap(), seed).mangler(connection), &[&stream]);
            for (text, end) in [("reset@3", Transmit::Reset), ("half-close@3", Transmit::Fin)] {
                let out = of(text);
                assert_eq!(out.last().unwrap().1, end);
                let octets = octets(&out);
                assert!(stream.starts_with(&octets), "nothing else is changed");
                assert!(
                    (REQUEST.len() + WRITE.len()..=REQUEST.len() + WRITE.len() + SEND.len()).contains(&octets.len())
                );
            }
            let doubled = [REQUEST, WRITE, WRITE].concat();
            assert_eq!(octets(&of("duplicate@2"))[..doubled.len()], doubled);
            assert_eq!(octets(&of("duplicate@2")).len(), stream.len() + WRITE.len());
            assert_eq!(octets(&of("reset@1000")), stream, "there is no such write");
        }
    }
    for (text, words) in [
        ("reset@0", "\"0\" is not a number of at least 1; write @N to mangle only the Nth PDU or write"),
        ("reset@", "\"\" is not a number of at least 1; write @N to mangle only the Nth PDU or write"),
    ] {
        assert_eq!(text.parse::<Plan>().unwrap_err().to_string(), words);
    }
}

/// The first stream has the FPDU of RFC 5044 Figure 5: a Send that begins with a marker. The FPDUs
/// of the second stream have no CRC.
#[test]
fn markers_and_missing_crcs_are_kept() {
    let send =
        [&b"\0\0\0\0\x00\x2a\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0"[..], &[0; 24], b"\x52\x23\x99\x83"].concat();
    let without_crc = [&WRITE[..16], &[0; 4]].concat();
    for stream in [[REQUEST, &send].concat(), [REQUEST, &without_crc, &without_crc].concat()] {
        assert_eq!(octets(&mangled(Mangling::new(Plan::default(), 1).mangler(0), &[&stream])), stream);
    }
}

#[test]
fn a_seed_makes_the_same_of_the_same_however_it_is_cut() {
    let stream = stream();
    for seed in 0..50 {
        let pieces: Vec<&[u8]> = stream.chunks(13).collect();
        let of = |seed, pieces: &[&[u8]]| mangled(plan("all", seed), pieces);
        let (uncut, cut) = (of(seed, &[&stream]), of(seed, &pieces));
        assert_eq!(uncut, cut, "seed {seed}");
        assert_ne!(octets(&uncut), octets(&of(seed + 1000, &[&stream])), "seed {seed}");
    }
}

#[test]
fn each_kind_has_the_effect_of_its_word() {
    let stream = stream();
    let of = |text: &str| mangled(plan(text, 7), &[&stream]);
    let right = octets(&of("cut=1"));
    assert_eq!(right, stream);
    assert!(of("cut=1").len() > 200);
    let late = of("delay=1");
    assert_eq!(octets(&late), stream);
    assert!(late.last().unwrap().0 > NOW + Duration::from_secs(1), "{:?}", late.last());
    assert_eq!(octets(&of("duplicate=1")).len(), stream.len() * 2);
    assert_eq!(octets(&of("flip=1")).len(), stream.len());
    assert_ne!(octets(&of("flip=1")), stream);
    assert_ne!(octets(&of("edge=1")), stream);
    assert!(octets(&of("insert=1")).len() > stream.len());
    assert!(octets(&of("truncate=1")).len() < stream.len());
    let swapped = octets(&of("reorder=1"));
    assert!(swapped.starts_with(WRITE), "the first FPDU is sent before the start-up frame");
    assert_eq!(swapped.len(), stream.len());
    for (text, end) in [("half-close=10", Transmit::Fin), ("reset=10", Transmit::Reset)] {
        let out = of(text);
        assert_eq!(out.last().unwrap().1, end, "{text}");
        let sent = octets(&out);
        assert!(sent.len() < stream.len() && stream.starts_with(&sent), "{text}");
    }
}

/// If an FPDU with a changed ULPDU has a correct CRC, DDP receives the change.
#[test]
fn half_of_the_changes_reach_ddp() {
    let (mut good, mut wrong) = (0, 0);
    for seed in 0..400 {
        let mut pdus = Pdus::default();
        pdus.push(&octets(&mangled(plan("flip=1", seed), &[REQUEST, SEND])));
        assert!(matches!(pdus.next(), Some(Pdu::Startup(_)) | None));
        let Some(Pdu::Ulpdu { ulpdu, framing }) = pdus.next() else { continue };
        // Two flips of the same bit cancel each other. Then the ULPDU is unchanged, and does not
        // count.
        good += u32::from(framing.crc && ulpdu != SEND[2..20]);
        wrong += u32::from(!framing.crc);
    }
    assert!(good > 100 && wrong > 50, "{good} and {wrong}");
}

#[test]
fn who_aborts_does_not_wait() {
    let mut mangler = plan("delay=1", 3);
    mangler.push(NOW, Transmit::Octets(Bytes::from(stream())));
    mangler.push(NOW, Transmit::Reset);
    assert_eq!(mangler.poll(NOW), Some(Transmit::Reset));
    assert!(mangler.is_idle());
    mangler.push(NOW, Transmit::Fin);
    assert_eq!(mangler.poll(NOW), None);
}

#[test]
fn room_ends() {
    let mut mangler = plan("delay=1", 3);
    mangler.push(NOW, Transmit::Octets(Bytes::from_static(REQUEST)));
    let payload = vec![7; 60_000];
    let mut position = 0;
    while mangler.has_room() {
        let mut fpdu = Vec::new();
        position = fpdu::emit(position, &[&payload], Framing { markers: false, crc: true }, &mut fpdu).unwrap().end;
        assert_eq!(crc::crc32c(&fpdu[..fpdu.len() - 4]).to_le_bytes(), fpdu[fpdu.len() - 4..]);
        mangler.push(NOW, Transmit::Octets(fpdu.into()));
    }
    assert!(position < 1_200_000, "{position}");
}

#[test]
fn plans_are_printed_and_rejected_with_a_reason() {
    let plan: Plan = "all,flip=0,cut=3".parse().unwrap();
    assert_eq!(
        [Kind::Flip, Kind::Cut, Kind::Edge].map(|kind| plan.frequency(kind)),
        [Frequency::Never, Frequency::OneIn(3), Frequency::OneIn(20)]
    );
    assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
    let error = "flip,chop".parse::<Plan>().unwrap_err().to_string();
    assert_eq!(
        error,
        "\"chop\" is not a kind of mangling; use all, mutate, flip, edge, truncate, duplicate, insert, reorder, cut, \
         delay, half-close, reset"
    );
    let error = "flip=often".parse::<Plan>().unwrap_err().to_string();
    assert_eq!(error, "\"often\" is not a number; use =N to mangle, on average, 1 of N PDUs or 1 of N writes");
}
