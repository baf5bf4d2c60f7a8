//! Flags for the actions of a connection. Deviations in the bytes of single frames have other
//! hooks.

/// Flags that change the actions of a connection. For the correct endpoint, all flags are false.
/// [`crate::connection`] and the RNIC read the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are separate violations and can be combined freely")]
pub(crate) struct Conduct {
    /// If a Send begins before the last segment of the previous Send, the previous Send is dropped,
    /// and the Send is delivered.
    pub(crate) abandons_incomplete: bool,
    /// Segments that arrive after an error are processed as if no error had occurred.
    pub(crate) acts_after_error: bool,
    /// An FPDU is processed before all bytes of its CRC have arrived.
    pub(crate) acts_before_crc: bool,
    /// The segments of a Read Response are placed one after the other, whatever their TO is.
    pub(crate) appends_responses: bool,
    /// The segments of a Send are placed one after the other, whatever their MO is.
    pub(crate) appends_segments: bool,
    /// A Responder answers a malformed Request with a Reply before the connection closes.
    pub(crate) answers_malformed: bool,
    /// An Initiator sends an FPDU right after its Request.
    pub(crate) begins_without_reply: bool,
    /// The connection closes if no bytes arrive for a while in the middle of a message.
    pub(crate) closes_after_pause: bool,
    /// After a malformed start-up frame, the connection stays open until start-up times out.
    pub(crate) closes_late: bool,
    /// The end of start-up is reported as the completion of a receive, but the receive remains
    /// posted.
    pub(crate) completes_startup: bool,
    /// The last bytes are missing in FPDUs that are sent while the connection closes.
    pub(crate) cuts_last_fpdu: bool,
    /// The bytes after an FPDU are lost if TCP delivers these bytes together with the FPDU.
    pub(crate) drops_after_first: bool,
    /// The bytes after 64 Sends are lost if TCP delivers these bytes together with the Sends.
    pub(crate) drops_after_64_sends: bool,
    /// The Terminate for a rejected segment is not sent before the peer closes.
    pub(crate) delays_terminate: bool,
    /// A Send is delivered when its last segment arrives, even if earlier bytes of the Send are
    /// missing.
    pub(crate) delivers_gaps: bool,
    /// When the user closes, posted messages and the remaining part of a partly sent message are
    /// dropped.
    pub(crate) drops_posted: bool,
    /// A Responder loses the first FPDU that it receives.
    pub(crate) drops_first_fpdu: bool,
    /// An invalid FPDU is skipped, and later FPDUs are delivered.
    pub(crate) goes_on_after_error: bool,
    /// An FPDU whose CRC field is cut by the peer's FIN is processed.
    pub(crate) completes_cut_crc: bool,
    /// An Atomic Operation completes when its Request is sent.
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
    /// A user that requested notifications only for solicited completions is notified of every
    /// completion.
    pub(crate) notifies_unsolicited: bool,
    /// When a Queue Pair ends, the receives in its shared receive queue are flushed.
    pub(crate) flushes_shared_receives: bool,
    /// A FIN of the peer is ignored if it arrives in the middle of a message.
    pub(crate) ignores_fin_in_message: bool,
    /// Immediate Data uses two receives.
    pub(crate) immediate_takes_two: bool,
    /// A Send is placed as if its receive had one part, which begins where the first part begins.
    pub(crate) joins_parts: bool,
    /// Invalidated and deallocated STags stay valid.
    pub(crate) keeps_revoked: bool,
    /// The connection remains open after an error.
    pub(crate) keeps_open: bool,
    /// An FPDU that begins in one TCP segment and ends in another TCP segment is treated as an
    /// error.
    pub(crate) needs_alignment: bool,
    /// A receive of a shared receive queue completes on the Queue Pair that took the last receive
    /// of this queue.
    pub(crate) mixes_shared_completions: bool,
    /// Each stream uses its own copy of the memory words that Atomic Operations change.
    pub(crate) knows_words_by_stream: bool,
    /// Work requests with a Read Fence are sent at once.
    pub(crate) overlooks_fence: bool,
    /// A marker that does not point to its FPDU is ignored.
    pub(crate) overlooks_markers: bool,
    /// PAD and CRC are passed to DDP as the end of the ULPDU.
    pub(crate) passes_trailer: bool,
    /// The tagged payload of an FPDU with a wrong CRC is placed before the error is reported.
    pub(crate) places_bad_crc: bool,
    /// The part of a rejected Write that fits in the region is placed before the error is reported.
    pub(crate) places_refused: bool,
    /// The data of a Send is not placed before data of the next Send arrives.
    pub(crate) places_sends_late: bool,
    /// The data of a Write is not placed before data of the next Write arrives.
    pub(crate) places_writes_late: bool,
    /// This side sends an FPDU after a rejecting Reply that either side has sent.
    pub(crate) sends_after_rejection: bool,
    /// TCP is reset instead of closed.
    pub(crate) resets: bool,
    /// If the memory of a message cannot be read, zeros are sent instead.
    pub(crate) sends_unreadable: bool,
    /// A Responder sends FPDUs before it has received an FPDU.
    pub(crate) sends_early: bool,
    /// STags are consecutive numbers.
    pub(crate) numbers_stags: bool,
    /// No Terminate is sent after an error.
    pub(crate) skips_terminate: bool,
    /// A Responder sends a Reply before it has received a Request.
    pub(crate) replies_unrequested: bool,
    /// After the peer's FIN, this side sends nothing.
    pub(crate) stops_at_fin: bool,
    /// Work posted after the end of a stream is accepted and never completes.
    pub(crate) swallows_late_posts: bool,
    /// FPDUs are split across TCP segments.
    pub(crate) splits_fpdus: bool,
    /// Surplus bytes after the private data of a start-up frame are ignored.
    pub(crate) takes_surplus: bool,
    /// A Responder answers an invalid first FPDU with a Terminate.
    pub(crate) terminates_first_fpdu: bool,
    /// A Responder does not answer a Read Request that is the ready-to-receive message.
    pub(crate) withholds_read_response: bool,
}
