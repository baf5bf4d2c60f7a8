//! The actions of a connection, apart from the bytes of single frames. The default is the correct
//! endpoint's.

/// Each flag is looked at in one place of [`crate::connection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a violation of its own, and they can be combined freely")]
pub(crate) struct Conduct {
    /// Segments that arrive after an error are processed as if there were none.
    pub(crate) acts_after_error: bool,
    /// An FPDU is taken while its CRC is still to come.
    pub(crate) acts_before_crc: bool,
    /// A malformed start-up frame is answered before the connection closes.
    pub(crate) answers_malformed: bool,
    /// An Initiator sends an FPDU right after its Request.
    pub(crate) begins_without_reply: bool,
    /// A malformed start-up frame closes when start-up times out, not at once.
    pub(crate) closes_late: bool,
    /// The end of start-up completes a receive, which stays where it is.
    pub(crate) completes_startup: bool,
    /// FPDUs that go out while the connection closes lack their end.
    pub(crate) cuts_last_fpdu: bool,
    /// Bytes after the first FPDU of a TCP segment are lost.
    pub(crate) drops_after_first: bool,
    /// The Terminate for a rejected segment is sent only when the peer closes.
    pub(crate) delays_terminate: bool,
    /// Messages that are posted but not sent are dropped when the user closes.
    pub(crate) drops_posted: bool,
    /// A Responder loses the first FPDU.
    pub(crate) drops_first_fpdu: bool,
    /// An invalid FPDU ends nothing; later ones are delivered.
    pub(crate) goes_on_after_error: bool,
    /// An Atomic Operation completes when its Request goes out.
    pub(crate) completes_atomics_early: bool,
    /// A Read completes with the first segment of its Response.
    pub(crate) completes_reads_early: bool,
    /// The end of a connection is not reported to the user.
    pub(crate) conceals_end: bool,
    /// An Atomic Request of the peer completes a receive.
    pub(crate) delivers_atomics: bool,
    /// A Read Request of the peer completes a receive.
    pub(crate) delivers_reads: bool,
    /// A Write of the peer completes a receive.
    pub(crate) delivers_writes: bool,
    /// A user that requested solicited notifications is notified of every completion.
    pub(crate) notifies_unsolicited: bool,
    /// Immediate Data takes two receives.
    pub(crate) immediate_takes_two: bool,
    /// Invalidated and deallocated STags stay valid.
    pub(crate) keeps_revoked: bool,
    /// The connection stays open after an error.
    pub(crate) keeps_open: bool,
    /// An FPDU that begins in one TCP segment and ends in another is an error.
    pub(crate) needs_alignment: bool,
    /// Each stream has its own idea of a word that Atomic Operations change.
    pub(crate) knows_words_by_stream: bool,
    /// Work requests with a Read Fence are sent at once.
    pub(crate) overlooks_fence: bool,
    /// A marker that points elsewhere is not noticed.
    pub(crate) overlooks_markers: bool,
    /// PAD and CRC go to DDP as a part of the ULPDU.
    pub(crate) passes_trailer: bool,
    /// The octets of a Write that is refused are placed first, as far as the region goes.
    pub(crate) places_refused: bool,
    /// The octets of a Send are placed when the next of a Send arrive.
    pub(crate) places_sends_late: bool,
    /// The octets of a Write are placed when the next of a Write arrive.
    pub(crate) places_writes_late: bool,
    /// An FPDU is sent after a rejecting Reply of either side.
    pub(crate) sends_after_rejection: bool,
    /// TCP is reset, not closed.
    pub(crate) resets: bool,
    /// What cannot be read is sent as zeros.
    pub(crate) sends_unreadable: bool,
    /// A Responder sends FPDUs before it got one.
    pub(crate) sends_early: bool,
    /// STags are consecutive numbers.
    pub(crate) numbers_stags: bool,
    /// No Terminate is sent for an error.
    pub(crate) skips_terminate: bool,
    /// A Responder sends a Reply before it got a Request.
    pub(crate) replies_unasked: bool,
    /// The peer's FIN ends this side's half, too.
    pub(crate) stops_at_fin: bool,
    /// Work posted after the end of a stream is accepted and never completes.
    pub(crate) swallows_late_posts: bool,
    /// FPDUs are cut across TCP segments.
    pub(crate) splits_fpdus: bool,
    /// Octets after a start-up frame are ignored.
    pub(crate) takes_surplus: bool,
    /// A Responder answers an invalid first FPDU with a Terminate.
    pub(crate) terminates_first_fpdu: bool,
    /// A Responder leaves a Read as ready-to-receive message without answer.
    pub(crate) withholds_read_response: bool,
}
