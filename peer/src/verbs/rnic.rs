//! The RNIC: open, query, close, and event handlers (draft-hilland-rddp-verbs sections 9.2.1 and
//! 9.4).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::attributes::{RnicAttributes, RnicSettings};
use super::batch::Batch;
use super::error::{EventError, RnicError};
use super::llp::Llp;
use super::qp::Qp;
use super::read_pool::ReadPool;
use super::shared::Shared;
use super::slab::Slab;
use super::{CompletionHandlerId, HandlerAddress, Notification, RnicId};
use crate::hostile::{self, Deviations};
use crate::memory::{ListMode, Memory};
use crate::reject::reject_if;

/// The ID for the next RNIC that this process opens. Each time that an RNIC is opened, it gets a
/// new ID. The RNIC rejects handles that contain another ID (VERBS-5.1-1).
static OPENINGS: AtomicU64 = AtomicU64::new(1);

/// The RNICs of a process, by name. Clones refer to the same node.
#[derive(Debug, Clone)]
pub struct Node {
    /// For each name, whether the RNIC is open.
    open: Arc<Mutex<BTreeMap<String, bool>>>,
    limits: NodeLimits,
}

/// Limits of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// Greatest number of RNICs that can be open at a time. Default: no limit.
    pub max_open: usize,
    /// RNICs can be opened in Block Mode, which is optional (VERBS-5.1.2-4). Default true.
    pub block_lists: bool,
}

impl Default for NodeLimits {
    fn default() -> Self {
        NodeLimits { max_open: usize::MAX, block_lists: true }
    }
}

impl Node {
    /// Creates a node with RNICs of these names.
    #[must_use]
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Node::with(names, NodeLimits::default())
    }

    /// Creates a node with RNICs of these names, and with limits.
    #[must_use]
    pub fn with<S: Into<String>>(names: impl IntoIterator<Item = S>, limits: NodeLimits) -> Self {
        let names = names.into_iter().map(|name| (name.into(), false)).collect();
        Node { open: Arc::new(Mutex::new(names)), limits }
    }

    /// Open RNIC. `settings.memory.mode` selects Page or Block Mode. The RNIC stays open until
    /// [`Rnic::close`] is called or the [`Rnic`] is dropped. The returned [`Privileged`] gives its
    /// owner the rights of a privileged Consumer.
    ///
    /// # Errors
    /// `InvalidName`. `InUse`: the RNIC is already open. `BlockModeNotSupported`.
    /// `InsufficientResources`.
    pub fn open(&self, name: &str, settings: RnicSettings) -> Result<(Rnic, Privileged), RnicError> {
        let mut names = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let others = names.values().filter(|open| **open).count();
        let is_open = names.get_mut(name).ok_or(RnicError::InvalidName)?;
        reject_if(*is_open, RnicError::InUse)?;
        let unsupported = settings.memory.mode == ListMode::Block && !self.limits.block_lists;
        reject_if(unsupported, RnicError::BlockModeNotSupported)?;
        reject_if(others >= self.limits.max_open, RnicError::InsufficientResources)?;
        *is_open = true;
        drop(names);
        let settings = settings.effective();
        let id = RnicId(OPENINGS.fetch_add(1, Ordering::Relaxed));
        let shared = Shared {
            id,
            settings,
            deviations: Deviations::NONE,
            memory: Memory::new(settings.memory),
            cqs: Slab::new(settings.max_cqs),
            srqs: Slab::new(settings.max_srqs),
            handlers: BTreeMap::new(),
            async_handler: None,
            notifications: VecDeque::new(),
            reads: ReadPool::new(&settings),
            ranges: Vec::new(),
            held: Vec::new(),
            late: Vec::new(),
        };
        let rnic = Rnic {
            node: self.clone(),
            name: name.to_owned(),
            open: true,
            shared,
            qps: Slab::new(settings.max_qps),
            llps: Slab::new(usize::MAX),
            batch: Batch::default(),
            next_qp: 1,
            next_handler: 1,
        };
        Ok((rnic, Privileged(id)))
    }
}

/// Gives the rights of a privileged Consumer. [`Node::open`] returns this value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privileged(pub(super) RnicId);

/// An open RNIC.
#[derive(Debug)]
pub struct Rnic {
    node: Node,
    name: String,
    pub(super) open: bool,
    pub(super) shared: Shared,
    pub(super) qps: Slab<Qp>,
    pub(super) llps: Slab<Llp>,
    pub(super) batch: Batch,
    pub(super) next_qp: u32,
    next_handler: u32,
}

impl Drop for Rnic {
    fn drop(&mut self) {
        // An error means that the RNIC is already closed.
        let _ = self.close();
    }
}

/// RNIC management.
impl Rnic {
    /// Query RNIC: returns the attributes of the RNIC.
    ///
    /// # Errors
    /// `InvalidRnicHandle`.
    pub fn query(&self) -> Result<RnicAttributes, RnicError> {
        reject_if(!self.open, RnicError::InvalidRnicHandle)?;
        Ok(RnicAttributes::new(self.shared.settings, self.node.limits.block_lists))
    }

    /// Close RNIC: frees everything, and resets all open streams. The RNIC can then be opened
    /// again.
    ///
    /// # Errors
    /// `InvalidRnicHandle`.
    pub fn close(&mut self) -> Result<(), RnicError> {
        reject_if(!self.open, RnicError::InvalidRnicHandle)?;
        self.open = false;
        self.qps.clear();
        self.shared.srqs.clear();
        self.shared.cqs.clear();
        self.shared.memory.close();
        self.shared.handlers.clear();
        self.shared.async_handler = None;
        self.shared.notifications.clear();
        for llp in self.llps.iter_mut() {
            llp.qp = None;
            llp.want_reset();
        }
        let mut open = self.node.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(self.name.clone(), false);
        Ok(())
    }

    /// Sets [deviations](crate::hostile) (deliberate violations) for all streams that are attached
    /// from now on, and for their Queue Pairs. If a deviation concerns registered memory, it has an
    /// effect only if this function is called before the first registration.
    pub fn deviate(&mut self, deviations: Deviations) {
        if hostile::hook::conduct(&deviations).numbers_stags {
            self.shared.memory.use_consecutive_indices();
        }
        if hostile::hook::conduct(&deviations).keeps_revoked {
            self.shared.memory.keep_revoked();
        }
        self.shared.deviations = deviations;
    }

    /// The [deviations](crate::hostile) of the streams. By default, there are none.
    #[must_use]
    pub fn deviations(&self) -> &Deviations {
        &self.shared.deviations
    }

    /// Returns whether the RNIC reports the end of a connection to its user. False only with a
    /// deviation.
    #[must_use]
    pub fn reports_end(&self) -> bool {
        !hostile::hook::conduct(&self.shared.deviations).conceals_end
    }

    /// The RNIC's memory, for verbs that query memory, and for the contents of buffers.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// The RNIC's memory, for all PD and memory management verbs.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.shared.memory
    }
}

/// An operation of the verb Set Completion Event Handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerOperation {
    /// Registers a new handler.
    Register(HandlerAddress),
    /// Replaces the handler of an identifier.
    Change(CompletionHandlerId, HandlerAddress),
    /// Removes the handler of an identifier.
    Clear(CompletionHandlerId),
}

/// Event handlers.
impl Rnic {
    /// Set Completion Event Handler. Returns the identifier of the handler. Does not arm a CQ.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidHandler`, `InsufficientResources`.
    pub fn set_completion_event_handler(
        &mut self,
        operation: HandlerOperation,
    ) -> Result<CompletionHandlerId, EventError> {
        reject_if(!self.open, EventError::InvalidRnicHandle)?;
        let handlers = &mut self.shared.handlers;
        match operation {
            HandlerOperation::Register(address) => {
                let full = handlers.len() >= self.shared.settings.max_handlers || self.next_handler == u32::MAX;
                reject_if(full, EventError::InsufficientResources)?;
                let id = CompletionHandlerId(self.next_handler);
                self.next_handler += 1;
                handlers.insert(id, address);
                Ok(id)
            }
            HandlerOperation::Change(id, address) => {
                *handlers.get_mut(&id).ok_or(EventError::InvalidHandler)? = address;
                Ok(id)
            }
            HandlerOperation::Clear(id) => handlers.remove(&id).map(|_| id).ok_or(EventError::InvalidHandler),
        }
    }

    /// Set Asynchronous Event Handler: replaces the handler of this RNIC. `None` turns events off.
    ///
    /// # Errors
    /// `InvalidRnicHandle`.
    pub fn set_async_event_handler(&mut self, address: Option<HandlerAddress>) -> Result<(), EventError> {
        reject_if(!self.open, EventError::InvalidRnicHandle)?;
        self.shared.async_handler = address;
        Ok(())
    }

    /// Returns the next call that the driver has to make to an event handler.
    pub fn poll_notification(&mut self) -> Option<Notification> {
        self.shared.notifications.pop_front()
    }
}
