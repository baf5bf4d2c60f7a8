//! Data of the hooks of completions.

use crate::verbs::{CompletedOperation, CompletionStatus, WorkCompletion};

/// The completions that are reported in place of one correct completion.
#[derive(Debug)]
pub(crate) struct Completed<'a> {
    /// Completions to report now. At first this list contains only the correct completion.
    pub(in crate::hostile) out: Vec<WorkCompletion>,
    /// Completions to report later.
    held: &'a mut Vec<WorkCompletion>,
}

impl<'a> Completed<'a> {
    pub(in crate::hostile) fn right(completion: WorkCompletion, held: &'a mut Vec<WorkCompletion>) -> Self {
        Completed { out: vec![completion], held }
    }

    /// Changes each completion of a successful receive.
    pub(in crate::hostile) fn received(&mut self, change: impl Fn(&mut WorkCompletion)) {
        self.out.iter_mut().filter(|completion| is_receive(completion)).for_each(change);
    }

    /// Groups the completions that `swapped` selects into pairs. Reports the second completion of
    /// each pair before the first completion of the pair.
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

    /// Holds back the completions that `late` selects. Reports them after the next receive that
    /// `late` does not select.
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

/// Returns whether the completion reports a successful receive.
pub(in crate::hostile) fn is_receive(completion: &WorkCompletion) -> bool {
    completion.status == CompletionStatus::Success && completion.operation == CompletedOperation::Receive
}
