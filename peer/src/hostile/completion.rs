//! Deviations in what the user of an RNIC is told: completions and asynchronous events. The wire shows none of them.

use weft_core::wire::rdmap::Immediate;

use super::conduct::Conduct;
use crate::verbs::{CompletedOperation, CompletionStatus, EventId, WorkCompletion};

/// One right completion, and what is told in its place.
#[derive(Debug)]
pub(crate) struct Completed<'a> {
    out: Vec<WorkCompletion>,
    /// What is told later.
    held: &'a mut Vec<WorkCompletion>,
}

impl<'a> Completed<'a> {
    pub(super) fn right(completion: WorkCompletion, held: &'a mut Vec<WorkCompletion>) -> Self {
        Completed { out: vec![completion], held }
    }

    pub(super) fn into_told(self) -> Vec<WorkCompletion> {
        self.out
    }

    /// Changes each of a receive that succeeded.
    fn received(&mut self, change: impl Fn(&mut WorkCompletion)) {
        self.out.iter_mut().filter(|completion| is_receive(completion)).for_each(change);
    }

    /// Tells each that `swapped` picks behind the next one that it picks.
    fn swap(&mut self, swapped: impl Fn(&WorkCompletion) -> bool) {
        for completion in std::mem::take(&mut self.out) {
            match self.held.pop() {
                held if !swapped(&completion) => {
                    self.held.extend(held);
                    self.out.push(completion);
                }
                None => self.held.push(completion),
                Some(first) => self.out.extend([completion, first]),
            }
        }
    }

    /// Tells what `late` picks behind the next receive that it does not pick.
    fn delay(&mut self, late: impl Fn(&WorkCompletion) -> bool) {
        for completion in std::mem::take(&mut self.out) {
            if late(&completion) {
                self.held.push(completion);
                continue;
            }
            self.out.push(completion);
            if is_receive(&completion) {
                self.out.append(self.held);
            }
        }
    }
}

/// Octets of a Send that is not short: one that no other follows would be held back for ever.
const SHORT: u32 = 8;

fn is_receive(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Receive
}

fn is_atomic(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Atomic
}

fn is_read(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Read
}

/// What tells that a peer's message, or the stream, was in error.
fn is_error(event: EventId) -> bool {
    !matches!(event, EventId::SrqLimitReached | EventId::QpRqLimitReached | EventId::TerminateReceived)
}

deviations! {
    "rdmap.completes-atomics-early" [Conduct(|conduct: &mut Conduct| conduct.completes_atomics_early = true)]
        ["RDMAP-7306.5.4-10"] "An Atomic Operation completes when its Request goes out.";
    "rdmap.completes-reads-early" [Conduct(|conduct: &mut Conduct| conduct.completes_reads_early = true)]
        ["RDMAP-5.5-21", "RDMAP-5.2.2-9", "DDP-4.1-8"] "A Read completes with the first segment of its Response.";
    "rdmap.overlooks-read-fence" [Conduct(|conduct: &mut Conduct| conduct.overlooks_fence = true)]
        ["VERBS-8.2.2.2-2"] "What is posted with a Read Fence goes out while Reads in front of it wait for their answer.";
    "rdmap.completes-startup" [Conduct(|conduct: &mut Conduct| conduct.completes_startup = true)] ["P2P-5-7"]
        "The user is told of the end of start-up by the completion of its first receive.";
    "rdmap.conceals-completed-reads" [Completion(|told| told.out.retain(|completion| !is_read(completion)))]
        ["RDMAP-5.2.2-9", "RDMAP-5.5-23"] "The user is not told that a Read is done.";
    "rdmap.conceals-empty-sends" [Completion(|told| told.out.retain(|completion| !is_receive(completion) || completion.octets > 0))]
        ["RDMAP-5.3-17", "RDMAP-5.3-2", "DDP-1.2-1"] "The user is not told of Sends of no octets.";
    "rdmap.conceals-end" [Conduct(|conduct: &mut Conduct| conduct.conceals_end = true)] ["DDP-3-10", "DDP-3-14", "DDP-6.2.1-3"]
        "The user is not told that a connection has ended.";
    "rdmap.conceals-errors" [Conceals(is_error), Conduct(|conduct: &mut Conduct| conduct.conceals_end = true), Completion(|told| {
        told.out.retain(|completion| completion.status == CompletionStatus::Success);
    })] [
        "RDMAP-7.1-1", "DDP-7.1-20", "DDP-8.3-4", "DDP-6.2.2-1", "DDP-6.2.2-5", "DDP-6.2.2-6", "DDP-3-3", "RDMAP-6.2-3",
        "RDMAP-7306.5.1.1-6", "RDMAP-7306.5.1.2-7",
    ] "The user is told of nothing that went wrong: no event of an error, no completion, and not that the connection has ended.";
    "rdmap.conceals-flushed" [Completion(|told| told.out.retain(|completion| completion.status != CompletionStatus::Flushed))]
        ["RDMAP-6.2.1-5", "RDMAP-5.4-11", "DDP-6.2.2-7"] "Work that is not done when a stream ends never completes.";
    "rdmap.conceals-immediate-octets" [Completion(|told| told.received(|completion| {
        completion.immediate = completion.immediate.map(|_| Immediate::default());
    }))] ["RDMAP-7306.6.1-1"] "The user is told of eight octets of zero where Immediate Data came.";
    "rdmap.conceals-invalidation" [Completion(|told| told.received(|completion| completion.invalidated = None))]
        ["RDMAP-3.2-10", "RDMAP-3.2-2"] "The user is not told which STag a Send has invalidated.";
    "rdmap.conceals-original-values" [Completion(|told| {
        told.out.iter_mut().filter(|completion| is_atomic(completion)).for_each(|completion| completion.original_value = Some(0));
    })] ["RDMAP-7306.5.2.2-10"] "The user is told that an Atomic Operation found zero, whatever it found.";
    "rdmap.conceals-shared-limit" [Conceals(|event| event == EventId::SrqLimitReached)] ["RDMAP-8.1.2-9", "DDP-8.3.2-7"]
        "The user is not told that a shared receive queue has less receives than its limit.";
    "rdmap.conceals-terminate" [Conceals(|event| event == EventId::TerminateReceived)] ["RDMAP-5.4-9", "RDMAP-3.2-4"]
        "Of a Terminate that arrives the user is told no more than of any end: its work is flushed.";
    "rdmap.delivers-atomics" [Conduct(|conduct: &mut Conduct| conduct.delivers_atomics = true)] ["RDMAP-7306.5.2.1-16"]
        "An Atomic Request of the peer completes a receive.";
    "rdmap.delivers-reads" [Conduct(|conduct: &mut Conduct| conduct.delivers_reads = true)]
        ["RDMAP-5.2.1-4", "RDMAP-3.2-7"] "A Read Request of the peer completes a receive.";
    "rdmap.delivers-writes" [Conduct(|conduct: &mut Conduct| conduct.delivers_writes = true)]
        ["RDMAP-5.1-2", "RDMAP-3.2-5"] "A Write of the peer completes a receive.";
    "rdmap.immediate-takes-two" [Conduct(|conduct: &mut Conduct| conduct.immediate_takes_two = true)] ["RDMAP-7306.6.3-2"]
        "Immediate Data takes two receives, of which the user is told of one.";
    "rdmap.notifies-unsolicited" [Conduct(|conduct: &mut Conduct| conduct.notifies_unsolicited = true)] ["RDMAP-2.4-1"]
        "A user that asked to be notified of solicited completions alone is notified of any.";
    "rdmap.swallows-late-posts" [Conduct(|conduct: &mut Conduct| conduct.swallows_late_posts = true)] ["DDP-6.2.1-4"]
        "What is posted behind the end of a stream is taken, and nothing comes of it.";
    "rdmap.swaps-received" [Completion(|told| told.swap(|completion| is_receive(completion) && completion.octets < SHORT))]
        ["RDMAP-5.3-5", "RDMAP-5.5-8", "RDMAP-B-1", "DDP-5.3-6", "DDP-5.4-5", "DDP-5.1.2-2", "MPA-2-4", "MPA-B.1-2"] "Of two Sends of less than eight octets the user is told of the second before the first.";
    "rdmap.swaps-reads" [Completion(|told| told.swap(is_read))]
        ["RDMAP-5.5-12", "RDMAP-5.5-19"] "The user is told of the second of two Reads before the first.";
    "rdmap.swaps-original-values" [Completion(|told| {
        told.swap(is_atomic);
        if let [first, second] = told.out.as_mut_slice() {
            std::mem::swap(&mut first.wr_id, &mut second.wr_id);
        }
    })] ["RDMAP-7306.5-6"] "Of two Atomic Operations each is told to have found what the other one did.";
    "rdmap.tells-immediate-late" [Completion(|told| told.delay(|completion| completion.immediate.is_some()))]
        ["RDMAP-7306.6.3-7", "RDMAP-7306.7-1"] "The user is told of Immediate Data behind the Send that follows it.";
    "rdmap.tells-one-octet-more" [Completion(|told| told.received(|completion| completion.octets = completion.octets.wrapping_add(1)))]
        ["RDMAP-5.3-13", "RDMAP-3.1-6", "RDMAP-3.2-2", "RDMAP-5.3-3", "DDP-5.4-6", "DDP-3-4", "DDP-3-8", "DDP-1.2-3"]
        "The user is told of one octet more than a Send had.";
    "rdmap.tells-received-twice" [Completion(|told| {
        let again: Vec<WorkCompletion> = told.out.iter().copied().filter(is_receive).collect();
        told.out.extend(again);
    })] ["DDP-5.3-5", "RDMAP-5.3-2", "DDP-1.2-1"] "The user is told twice of each Send.";
}
