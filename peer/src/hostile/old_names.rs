//! Names that deviations had in previous versions. These names still work, but weft logs a warning.

/// Pairs of old name and new name.
const NAMES: [(&str, &str); 49] = [
    ("ddp.message-behind-terminate", "ddp.message-after-terminate"),
    ("ddp.mo-stands-still", "ddp.mo-constant"),
    ("ddp.msn-stands-still", "ddp.msn-constant"),
    ("ddp.to-stands-still", "ddp.to-constant"),
    ("mpa.drops-behind-first-fpdu", "mpa.drops-after-first-fpdu"),
    ("mpa.markers-unasked", "mpa.markers-unrequested"),
    ("mpa.replies-unasked", "mpa.replies-unrequested"),
    ("mpa.reply-markers-not-asked", "mpa.reply-markers-not-requested"),
    ("p2p.opens-unasked", "p2p.opens-unrequested"),
    ("p2p.swaps-told-depths", "p2p.swaps-reported-depths"),
    ("p2p.tells-words", "p2p.reports-words"),
    ("pm.keeps-asked-address", "pm.keeps-requested-address"),
    ("pm.takes-unasked", "pm.takes-unrequested"),
    ("rdmap.atomic-response-unasked", "rdmap.atomic-response-unrequested"),
    ("rdmap.tells-immediate-late", "rdmap.reports-immediate-late"),
    ("rdmap.tells-one-octet-more", "rdmap.reports-one-byte-more"),
    ("rdmap.tells-received-twice", "rdmap.reports-received-twice"),
    ("rdmap.tells-second-error", "rdmap.reports-second-error"),
    ("rdmap.write-told-as-protection", "rdmap.write-reported-as-protection"),
    ("sdp.abort-conn-unasked", "sdp.abort-conn-unrequested"),
    ("sdp.ch-rcv-buf-ack-as-asked", "sdp.ch-rcv-buf-ack-as-requested"),
    ("sdp.ch-rcv-buf-ack-behind-own", "sdp.ch-rcv-buf-ack-after-own"),
    ("sdp.ch-rcv-buf-ack-unasked", "sdp.ch-rcv-buf-ack-unrequested"),
    ("sdp.data-behind-dis-conn", "sdp.data-after-dis-conn"),
    ("sdp.data-behind-src-avail", "sdp.data-after-src-avail"),
    ("sdp.data-behind-susp-comm", "sdp.data-after-susp-comm"),
    ("sdp.data-behind-susp-comm-ack", "sdp.data-after-susp-comm-ack"),
    ("sdp.mseq-stands-still", "sdp.mseq-constant"),
    ("sdp.pipelined-behind-mode-change", "sdp.pipelined-after-mode-change"),
    ("sdp.private-buffers-few-behind-suspension", "sdp.private-buffers-few-after-suspension"),
    ("sdp.rd-compl-unasked", "sdp.rd-compl-unrequested"),
    ("sdp.reads-behind-payload", "sdp.reads-after-payload"),
    ("sdp.refuses-data-behind-dis-conn", "sdp.refuses-data-after-dis-conn"),
    ("sdp.refuses-data-behind-hello", "sdp.refuses-data-after-hello"),
    ("sdp.refuses-data-behind-sink-avail", "sdp.refuses-data-after-sink-avail"),
    ("sdp.refuses-oob-behind-octets", "sdp.refuses-oob-after-bytes"),
    ("sdp.send-sm-unasked", "sdp.send-sm-unrequested"),
    ("sdp.sink-avail-behind-cancel", "sdp.sink-avail-after-cancel"),
    ("sdp.sink-cancel-ack-unasked", "sdp.sink-cancel-ack-unrequested"),
    ("sdp.src-avail-behind-cancel", "sdp.src-avail-after-cancel"),
    ("sdp.src-avail-behind-dis-conn", "sdp.src-avail-after-dis-conn"),
    ("sdp.src-avail-va-behind-payload", "sdp.src-avail-va-after-payload"),
    ("sdp.susp-comm-ack-behind-own", "sdp.susp-comm-ack-after-own"),
    ("sdp.susp-comm-ack-unasked", "sdp.susp-comm-ack-unrequested"),
    ("sdp.wr-compl-behind-mode-change", "sdp.wr-compl-after-mode-change"),
    ("sdp.wr-compl-unasked", "sdp.wr-compl-unrequested"),
    ("sdp.write-behind-susp-comm", "sdp.write-after-susp-comm"),
    ("sdp.write-behind-susp-comm-ack", "sdp.write-after-susp-comm-ack"),
    ("sdp.writes-behind-cancel", "sdp.writes-after-cancel"),
];

/// Returns the current name of a deviation. Logs a warning if `name` is an old name.
pub(super) fn current(name: &str) -> &str {
    match NAMES.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => {
            tracing::warn!("`{name}` is an old name; use `{new}`");
            new
        }
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{all, by_name};

    #[test]
    fn every_old_name_finds_its_deviation() {
        for (old, new) in NAMES {
            assert_eq!(by_name(old).unwrap().name, new);
            assert!(all().all(|deviation| deviation.name != old), "{old}");
        }
    }
}
