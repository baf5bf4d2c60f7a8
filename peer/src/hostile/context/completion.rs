//! What the hooks of completions work on.

use crate::verbs::{CompletedOperation, CompletionStatus, WorkCompletion};

/// One right completion, and the completions that are reported instead.
#[derive(Debug)]
pub(crate) struct Completed<'a> {
    pub(in crate::hostile) out: Vec<WorkCompletion>,
    /// Completions to report later.
    held: &'a mut Vec<WorkCompletion>,
}

impl<'a> Completed<'a> {
    pub(in crate::hostile) fn right(completion: WorkCompletion, held: &'a mut Vec<WorkCompletion>) -> Self {
        Completed { out: vec![completion], held }
    }

    pub(in crate::hostile) fn into_reported(self) -> Vec<WorkCompletion> {
        self.out
    }

    /// Changes each of a receive that succeeded.
    pub(in crate::hostile) fn received(&mut self, change: impl Fn(&mut WorkCompletion)) {
        self.out.iter_mut().filter(|completion| is_receive(completion)).for_each(change);
    }

    /// Reports the completions that `swapped` selects in pairs, the second one first.
    pub(in crate::hostile) fn swap(&mut self, swapped: impl Fn(&WorkCompletion) -> bool) {
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

    /// Reports the completions that `late` selects after the next receive that it does not select.
    pub(in crate::hostile) fn delay(&mut self, late: impl Fn(&WorkCompletion) -> bool) {
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

/// Is it a receive that succeeded?
pub(in crate::hostile) fn is_receive(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Receive
}
