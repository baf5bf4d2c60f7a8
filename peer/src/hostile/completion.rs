//! Deviations in what the user of an RNIC is told: completions and asynchronous events. The wire shows none of them.

use crate::verbs::{CompletedOperation, CompletionStatus, WorkCompletion};

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
}

fn is_receive(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Receive
}

deviations! {
    "rdmap.tells-one-octet-more" [Completion(|told| told.received(|completion| completion.octets = completion.octets.wrapping_add(1)))]
        ["RDMAP-5.3-13", "RDMAP-3.1-6", "RDMAP-3.2-2", "RDMAP-5.3-3", "DDP-5.4-6", "DDP-3-4", "DDP-3-8", "DDP-1.2-3"]
        "The user is told of one octet more than a Send had.";
}
