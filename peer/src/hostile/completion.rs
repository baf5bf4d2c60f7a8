//! Deviations in what an RNIC reports to its user: completions and asynchronous events. A capture
//! cannot show these deviations.

use weft_core::wire::rdmap::Immediate;

use super::context::completion::is_receive;
use crate::verbs::{CompletedOperation, CompletionStatus, EventId, WorkCompletion};

/// `rdmap.swaps-received` swaps only received Sends that are shorter than this number of bytes. It
/// groups these Sends into pairs, and holds back the first Send of a pair until the second Send
/// arrives. If no second Send arrives, the first Send is never reported.
const SHORT: u32 = 8;

fn is_atomic(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Atomic
}

fn is_read(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Read
}

/// Returns whether the event reports an error of the stream or of a message from the peer.
fn is_error(event: EventId) -> bool {
    !matches!(event, EventId::SrqLimitReached | EventId::QpRqLimitReached | EventId::TerminateReceived)
}

deviations! {
    "rdmap.completes-atomics-early" [Conduct(|conduct| conduct.completes_atomics_early = true)]
        ["RDMAP-7306.5.4-10"] "completes an Atomic Operation when its Request is sent";
    "rdmap.completes-reads-early" [Conduct(|conduct| conduct.completes_reads_early = true)]
        ["RDMAP-5.5-21", "RDMAP-5.2.2-9", "DDP-4.1-8"] "completes a Read when the first segment of its Response arrives";
    "rdmap.overlooks-read-fence" [Conduct(|conduct| conduct.overlooks_fence = true)]
        ["VERBS-8.2.2.2-2"] "sends work with a Read Fence while earlier Reads are outstanding";
    "rdmap.completes-startup" [Conduct(|conduct| conduct.completes_startup = true)] ["P2P-5-7"]
        "reports the end of start-up as a completion of the user's first receive";
    "rdmap.conceals-completed-reads" [Completion(|completed| completed.out.retain(|completion| !is_read(completion)))]
        ["RDMAP-5.2.2-9", "RDMAP-5.5-23"] "does not report a completed Read to the user";
    "rdmap.conceals-empty-sends" [Completion(|completed| completed.out.retain(|completion| !is_receive(completion) || completion.octets > 0))]
        ["RDMAP-5.3-17", "RDMAP-5.3-2", "DDP-1.2-1"] "does not report Sends of zero bytes to the user";
    "rdmap.conceals-end" [Conduct(|conduct| conduct.conceals_end = true)] ["DDP-3-10", "DDP-3-14", "DDP-6.2.1-3"]
        "does not report the end of a connection to the user";
    "rdmap.conceals-errors" [Conceals(is_error), Conduct(|conduct| conduct.conceals_end = true), Completion(|completed| {
        completed.out.retain(|completion| completion.status == CompletionStatus::Success);
    })] [
        "RDMAP-7.1-1", "DDP-7.1-20", "DDP-8.3-4", "DDP-6.2.2-1", "DDP-6.2.2-5", "DDP-6.2.2-6", "DDP-3-3", "RDMAP-6.2-3",
        "RDMAP-7306.5.1.1-6", "RDMAP-7306.5.1.2-7",
    ] "hides errors from the user: reports no error event, no failed completion and no end of the connection";
    "rdmap.conceals-flushed" [Completion(|completed| completed.out.retain(|completion| completion.status != CompletionStatus::Flushed))]
        ["RDMAP-6.2.1-5", "RDMAP-5.4-11", "DDP-6.2.2-7", "VERBS-6.4-21"]
        "never completes the work that is outstanding when a stream ends";
    "rdmap.conceals-immediate-octets" [Completion(|completed| completed.received(|completion| {
        completion.immediate = completion.immediate.map(|_| Immediate::default());
    }))] ["RDMAP-7306.6.1-1"] "reports eight zero bytes to the user instead of the received Immediate Data";
    "rdmap.conceals-invalidation" [Completion(|completed| completed.received(|completion| completion.invalidated = None))]
        ["RDMAP-3.2-10", "RDMAP-3.2-2"] "does not report to the user which STag a Send has invalidated";
    "rdmap.conceals-original-values" [Completion(|completed| {
        completed.out.iter_mut().filter(|completion| is_atomic(completion)).for_each(|completion| completion.original_value = Some(0));
    })] ["RDMAP-7306.5.2.2-10"] "reports zero as the original value of every Atomic Operation";
    "rdmap.conceals-shared-limit" [Conceals(|event| event == EventId::SrqLimitReached)] ["RDMAP-8.1.2-9", "DDP-8.3.2-7"]
        "does not report that a shared receive queue has fewer receives than its limit";
    "rdmap.conceals-terminate" [Conceals(|event| event == EventId::TerminateReceived)] ["RDMAP-5.4-9", "RDMAP-3.2-4"]
        "flushes the user's work after the peer's Terminate, but does not report the Terminate";
    "rdmap.completes-on-another-pair" [Conduct(|conduct| conduct.mixes_shared_completions = true)] ["VERBS-6.3-3"]
        "completes a receive of a shared receive queue on the connection that took the last receive of this queue";
    "rdmap.delivers-atomics" [Conduct(|conduct| conduct.delivers_atomics = true)] ["RDMAP-7306.5.2.1-16"]
        "completes a receive when the peer's Atomic Request arrives";
    "rdmap.delivers-reads" [Conduct(|conduct| conduct.delivers_reads = true)]
        ["RDMAP-5.2.1-4", "RDMAP-3.2-7"] "completes a receive when the peer's Read Request arrives";
    "rdmap.delivers-writes" [Conduct(|conduct| conduct.delivers_writes = true)]
        ["RDMAP-5.1-2", "RDMAP-3.2-5"] "completes a receive when the peer's Write arrives";
    "rdmap.flushes-shared-receives" [Conduct(|conduct| conduct.flushes_shared_receives = true)]
        ["VERBS-6.3.6-7", "VERBS-6.3.6-3", "VERBS-6.3.6-4"]
        "flushes all receives of a shared receive queue when one of its connections ends";
    "rdmap.immediate-takes-two" [Conduct(|conduct| conduct.immediate_takes_two = true)] ["RDMAP-7306.6.3-2"]
        "uses two receives for Immediate Data and reports only one receive to the user";
    "rdmap.notifies-unsolicited" [Conduct(|conduct| conduct.notifies_unsolicited = true)] ["RDMAP-2.4-1"]
        "notifies the user of every completion although the user requested notifications only for solicited completions";
    "rdmap.swallows-late-posts" [Conduct(|conduct| conduct.swallows_late_posts = true)] ["DDP-6.2.1-4"]
        "accepts work that is posted after the end of a stream, and never completes this work";
    "rdmap.swaps-received" [Completion(|completed| completed.swap(|completion| is_receive(completion) && completion.octets < SHORT))]
        ["RDMAP-5.3-5", "RDMAP-5.5-8", "RDMAP-B-1", "DDP-5.3-6", "DDP-5.4-5", "DDP-5.1.2-2", "MPA-2-4", "MPA-B.1-2"] "reports two Sends of fewer than eight bytes in reverse order";
    "rdmap.swaps-reads" [Completion(|completed| completed.swap(is_read))]
        ["RDMAP-5.5-12", "RDMAP-5.5-19"] "reports two completed Reads in reverse order";
    "rdmap.swaps-original-values" [Completion(|completed| {
        completed.swap(is_atomic);
        if let [first, second] = completed.out.as_mut_slice() {
            std::mem::swap(&mut first.wr_id, &mut second.wr_id);
        }
    })] ["RDMAP-7306.5-6"] "swaps the original values of two Atomic Operations";
    "rdmap.reports-immediate-late" [Completion(|completed| completed.delay(|completion| completion.immediate.is_some()))]
        ["RDMAP-7306.6.3-7", "RDMAP-7306.7-1"] "reports Immediate Data to the user only after the next Send";
    "rdmap.reports-short-sends-late" [Completion(|completed| completed.delay(|completion| is_receive(completion) && completion.octets == 9))]
        ["RDMAP-7306.7-12"] "reports a Send of nine bytes to the user only after the next Send";
    "rdmap.reports-one-byte-more" [Completion(|completed| completed.received(|completion| completion.octets = completion.octets.wrapping_add(1)))]
        ["RDMAP-5.3-13", "RDMAP-3.1-6", "RDMAP-3.2-2", "RDMAP-5.3-3", "DDP-5.4-6", "DDP-3-4", "DDP-3-8", "DDP-1.2-3"]
        "reports to the user that a Send is one byte longer than it is";
    "rdmap.reports-received-twice" [Completion(|completed| {
        let again: Vec<WorkCompletion> = completed.out.iter().copied().filter(is_receive).collect();
        completed.out.extend(again);
    })] ["DDP-5.3-5", "RDMAP-5.3-2", "DDP-1.2-1"] "reports each Send to the user twice";
}
