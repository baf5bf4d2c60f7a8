//! Deviations in the actions of a connection. Deviations in the bytes of single frames are in other
//! files.

deviations! {
    "mpa.acts-before-crc" [Conduct(|conduct| conduct.acts_before_crc = true)] ["MPA-6-7"]
        "processes an FPDU before all bytes of its CRC field have arrived";
    "mpa.answers-malformed-request" [Conduct(|conduct| conduct.answers_malformed = true)] ["MPA-7.1.2-4", "MPA-7.1.2-3"]
        "sends a Reply to a malformed Request before it closes the connection";
    "mpa.begins-without-reply" [Conduct(|conduct| conduct.begins_without_reply = true)] ["MPA-7.1.2-11", "MPA-7.1.2-13"]
        "sends an FPDU right after its Request, before the Reply arrives";
    "mpa.closes-after-pause" [Conduct(|conduct| conduct.closes_after_pause = true)] ["RDMAP-5.3-5", "DDP-5.2-4"]
        "closes the connection if no bytes arrive for more than 1.2 seconds in the middle of a message";
    "mpa.closes-late" [Conduct(|conduct| conduct.closes_late = true)] ["MPA-8-9", "MPA-7.1.2-14", "MPA-7.1.2-4", "MPA-7.1.3-1", "MPA-8-4"]
        "leaves the connection open after a malformed start-up frame until start-up times out";
    "mpa.completes-cut-crc" [Conduct(|conduct| conduct.completes_cut_crc = true)]
        ["MPA-4.4-10", "MPA-4.4-19", "MPA-6-1", "MPA-6-3"]
        "processes an FPDU whose CRC field is cut at the end of the stream";
    "mpa.cuts-last-fpdu" [Conduct(|conduct| conduct.cuts_last_fpdu = true)] ["MPA-7.2-1", "MPA-A.1-3"]
        "omits the last four bytes of an FPDU that it sends while closing";
    "mpa.drops-after-first-fpdu" [Conduct(|conduct| conduct.drops_after_first = true)] ["MPA-5.2-1", "MPA-6-2", "MPA-7.1.5-5", "MPA-6-4"]
        "loses the bytes after an FPDU if TCP delivers these bytes together with the FPDU";
    "mpa.drops-after-64-sends" [Conduct(|conduct| conduct.drops_after_64_sends = true)] ["RDMAP-5.3-5", "DDP-5.2-4"]
        "loses the bytes after 64 Sends if TCP delivers these bytes together with the Sends";
    "mpa.drops-posted-sends" [Conduct(|conduct| conduct.drops_posted = true)] ["DDP-6.2.1-1"]
        "drops all unsent data and closes TCP when the user closes the connection";
    "mpa.drops-first-fpdu" [Conduct(|conduct| conduct.drops_first_fpdu = true)] ["MPA-7.1.2-10", "MPA-7.1.5-5", "MPA-7.1-7", "MPA-6-4"]
        "loses the first FPDU that it receives as Responder";
    "mpa.goes-on-after-error" [Conduct(|conduct| conduct.goes_on_after_error = true)] ["MPA-8-13", "MPA-9.1-1", "MPA-8-2"]
        "skips an invalid FPDU and delivers the following FPDUs";
    "mpa.ignores-fin-in-message" [Conduct(|conduct| conduct.ignores_fin_in_message = true)] ["MPA-8-15"]
        "leaves the connection open if the peer's FIN arrives in the middle of a message or of a Read";
    "mpa.keeps-open-after-error" [Conduct(|conduct| conduct.keeps_open = true)] ["MPA-8-15", "P2P-9.1-10", "P2P-9.2-16"]
        "leaves the connection open after a Terminate";
    "mpa.needs-alignment" [Conduct(|conduct| conduct.needs_alignment = true)] ["MPA-5.1-7", "MPA-A.4-1", "MPA-A.4-2", "MPA-A.4-3", "MPA-B.2-1", "MPA-A.5.2-1"]
        "treats an FPDU as an error if TCP delivers the FPDU in more than one piece";
    "mpa.overlooks-markers" [Conduct(|conduct| conduct.overlooks_markers = true)] ["MPA-8-3", "MPA-8-6"]
        "ignores a marker that does not point to its FPDU";
    "mpa.passes-trailer" [Conduct(|conduct| conduct.passes_trailer = true)] ["MPA-4.3-18", "MPA-3-9", "MPA-4.4-8", "MPA-4.3-17"]
        "passes PAD and CRC to DDP as the end of the ULPDU if CRCs are used and the FPDU has PAD";
    "mpa.replies-unrequested" [Conduct(|conduct| conduct.replies_unrequested = true)] ["MPA-7.1.2-12", "MPA-7.1.2-3"]
        "sends a Reply when TCP is connected, before a Request arrives";
    "mpa.sends-after-rejection" [Conduct(|conduct| conduct.sends_after_rejection = true)] ["MPA-7.1.2-15", "MPA-7.1.1-17"]
        "sends an FPDU after a rejecting Reply";
    "mpa.sends-early" [Conduct(|conduct| conduct.sends_early = true)] ["MPA-7.1.2-17", "MPA-7.1.3-2", "P2P-3-4", "P2P-mail.5-1"]
        "sends an empty Write and further FPDUs as Responder before it has received an FPDU";
    "mpa.skips-terminate" [Conduct(|conduct| conduct.skips_terminate = true)] ["MPA-8-5", "MPA-8-14", "P2P-8-5", "P2P-9.1-10", "P2P-9.2-16", "P2P-9.3-4", "P2P-8-2", "P2P-8-3"]
        "ends the connection after an error, but sends no Terminate";
    "mpa.splits-fpdus" [Conduct(|conduct| conduct.splits_fpdus = true)] ["MPA-5.1-4", "MPA-5.1-6", "MPA-A.1-1"]
        "puts the end of one FPDU and the beginning of the next FPDU into each TCP segment";
    "mpa.stops-at-fin" [Conduct(|conduct| conduct.stops_at_fin = true)] ["DDP-6.2.1-6", "DDP-6.2.1-5"]
        "stops sending when it receives the peer's FIN";
    "mpa.takes-surplus" [Conduct(|conduct| conduct.takes_surplus = true)] ["MPA-7.1.1-26", "MPA-7.1.2-26", "MPA-7.1.2-27"]
        "ignores surplus bytes after the private data of a start-up frame";
    "mpa.terminates-first-fpdu" [Conduct(|conduct| conduct.terminates_first_fpdu = true)] ["MPA-7.1.2-17"]
        "sends a Terminate as Responder if the first FPDU is invalid";
    "p2p.withholds-read-response" [Conduct(|conduct| conduct.withholds_read_response = true)] ["P2P-9.2-12", "RDMAP-5.2.1-18"]
        "does not answer a ready-to-receive message that is an empty Read Request";
}
