//! Work requests, their completions, and asynchronous events.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

use super::abi::{AsyncEvent, Atomic, BindMw, Cq, MwBind, MwBindInfo, Qp, RecvWr, Remote, SendWr, Sge, Wc};
use super::names;
use super::nic::{DeviceObject, Nic, check, flags};
use super::route::{EventOwner, router};
use crate::common::{no_pair, not_found};
use crate::protocol::{Access, Action, Completion, Event, Failure, Object, Operation, Part, Success};

/// Numbers of `enum ibv_wr_opcode`.
const WRITE: c_int = 0;
const SEND: c_int = 2;
const READ: c_int = 4;
const COMPARE_SWAP: c_int = 5;
const FETCH_ADD: c_int = 6;
const LOCAL_INV: c_int = 7;
const BIND_MW: c_int = 8;
const SEND_WITH_INV: c_int = 9;

/// Bits of `enum ibv_send_flags`.
const FENCE: c_uint = 1;
const SIGNALED: c_uint = 2;
const SOLICITED: c_uint = 4;
const INLINE: c_uint = 8;

/// `IBV_WC_WITH_INV`.
const WITH_INV: c_uint = 8;

impl Nic {
    /// Returns the parts of a work request for a queue that permits `most` parts. Checks the number
    /// of parts, because the libraries do not always check it.
    fn sges(&self, parts: &[Part], most: u32) -> Result<Vec<Sge>, Failure> {
        if parts.len() > most as usize {
            return Err(Failure::of(format!("the work request has {} parts; the queue permits {most}", parts.len())));
        }
        let sge = |part: &Part| {
            let region = self.find_region(part.region)?;
            let begin = if region.zero_based { 0 } else { region.memory.begin().addr() as u64 };
            // SAFETY: the region is registered.
            let own = unsafe { (*region.mr).lkey };
            Ok(Sge { addr: begin.wrapping_add(part.offset), length: part.length, lkey: part.key.unwrap_or(own) })
        };
        parts.iter().map(sge).collect()
    }

    /// Returns the parts of an inline work request. The library copies the data from the memory of
    /// this process. The device does not check the range, so this function checks it.
    fn inline_sges(&self, parts: &[Part], most: u32, octets: u32) -> Result<Vec<Sge>, Failure> {
        let mut sges = self.sges(parts, most)?;
        let total: u64 = parts.iter().map(|part| u64::from(part.length)).sum();
        if total > u64::from(octets) {
            return Err(Failure::of(format!("the request has {total} bytes inline; the Queue Pair permits {octets}")));
        }
        for (part, sge) in parts.iter().zip(&mut sges) {
            let memory = &self.find_region(part.region)?.memory;
            let begin = memory.begin_of(part.offset, part.length.into());
            let begin = begin.ok_or_else(|| Failure::of("the inline bytes of a part must lie in the part's region"))?;
            sge.addr = begin.addr() as u64;
        }
        Ok(sges)
    }

    fn queue_pair(&mut self, connection: Object) -> Result<*mut Qp, Failure> {
        let id = self.find_connection(connection)?.id;
        // SAFETY: the identifier is in the table, so it exists.
        let pair = unsafe { (*id).qp };
        if pair.is_null() { Err(no_pair(connection)) } else { Ok(pair) }
    }

    pub(super) fn post_receive(&mut self, on: Object, work: u64, parts: &[Part]) -> Result<Success, Failure> {
        let most = match self.objects.get(&on) {
            Some(DeviceObject::Shared { parts, .. }) => *parts,
            _ => {
                self.queue_pair(on)?;
                self.find_connection(on)?.parts.1
            }
        };
        let mut sges = self.sges(parts, most)?;
        let mut request = RecvWr {
            wr_id: work,
            next: ptr::null_mut(),
            sg_list: sges.as_mut_ptr(),
            num_sge: c_int::try_from(sges.len()).unwrap_or(c_int::MAX),
        };
        let mut bad = ptr::null_mut();
        if let Some(DeviceObject::Shared { queue, .. }) = self.objects.get(&on) {
            // SAFETY: the queue and its device exist. The driver copies the request.
            let posted = unsafe {
                (*(**queue).context).ops.post_srq_recv.map(|post| post(*queue, &raw mut request, &raw mut bad))
            };
            return check("ibv_post_srq_recv", posted.unwrap_or(libc::EOPNOTSUPP)).map(|()| Success::Nothing);
        }
        let pair = self.queue_pair(on)?;
        // SAFETY: the queue and its device exist. The driver copies the request.
        let posted = unsafe { (*(*pair).context).ops.post_recv.map(|post| post(pair, &raw mut request, &raw mut bad)) };
        check("ibv_post_recv", posted.unwrap_or(libc::EOPNOTSUPP)).map(|()| Success::Nothing)
    }

    pub(super) fn post_send(&mut self, action: &Action) -> Result<Success, Failure> {
        let Action::PostSend { connection, work, operation, parts, signaled, fence, inline } = action else {
            return Err(Failure::of("the request is not a work request"));
        };
        let pair = self.queue_pair(*connection)?;
        let (most, octets) =
            self.find_connection(*connection).map(|connection| (connection.parts.0, connection.inline))?;
        let mut sges = if *inline { self.inline_sges(parts, most, octets) } else { self.sges(parts, most) }?;
        let flag = |is: bool, flag: c_uint| if is { flag } else { 0 };
        let send_flags = flag(*signaled, SIGNALED) | flag(*fence, FENCE) | flag(*inline, INLINE);
        let mut request = SendWr {
            wr_id: *work,
            next: ptr::null_mut(),
            sg_list: sges.as_mut_ptr(),
            num_sge: c_int::try_from(sges.len()).unwrap_or(c_int::MAX),
            opcode: SEND,
            send_flags,
            invalidate_rkey: 0,
            wr: Remote::rdma(0, 0),
            xrc_remote_srqn: 0,
            bind_mw: BindMw { mw: ptr::null_mut(), rkey: 0, bind_info: no_bind() },
        };
        let mut done = Success::Nothing;
        match operation {
            Operation::Send { solicited, invalidate } => {
                request.send_flags |= flag(*solicited, SOLICITED);
                if let Some(key) = invalidate {
                    (request.opcode, request.invalidate_rkey) = (SEND_WITH_INV, *key);
                    // libsiw (rdma-core 44) reads the STag from this member. Other drivers ignore
                    // this member, because the operation does not use it.
                    request.wr = Remote::rdma(0, *key);
                }
            }
            Operation::Write { address, key } => {
                (request.opcode, request.wr) = (WRITE, Remote::rdma(*address, *key));
            }
            Operation::Read { address, key } => {
                (request.opcode, request.wr) = (READ, Remote::rdma(*address, *key));
            }
            Operation::FetchAdd { address, key, add } => {
                let atomic = Atomic { remote_addr: *address, compare_add: *add, swap: 0, rkey: *key };
                (request.opcode, request.wr) = (FETCH_ADD, Remote { atomic });
            }
            Operation::CompareSwap { address, key, compare, swap } => {
                let atomic = Atomic { remote_addr: *address, compare_add: *compare, swap: *swap, rkey: *key };
                (request.opcode, request.wr) = (COMPARE_SWAP, Remote { atomic });
            }
            Operation::Invalidate { key } => (request.opcode, request.invalidate_rkey) = (LOCAL_INV, *key),
            Operation::Bind { window, region, offset, length, access } => {
                let Some(DeviceObject::Window { window, posted }) = self.objects.get(window) else {
                    return Err(not_found(*window, "window"));
                };
                let (window, posted) = (*window, *posted);
                let bind_info = self.bind_info(*region, *offset, *length, access)?;
                if !posted {
                    return bind(pair, window, *work, send_flags, bind_info);
                }
                // SAFETY: the window exists.
                let key = next_stag(unsafe { (*window).rkey });
                (request.opcode, request.bind_mw) = (BIND_MW, BindMw { mw: window, rkey: key, bind_info });
                done = Success::Bound { remote_key: key };
            }
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the queue and its device exist. The driver copies the request.
        let posted = unsafe { (*(*pair).context).ops.post_send.map(|post| post(pair, &raw mut request, &raw mut bad)) };
        check("ibv_post_send", posted.unwrap_or(libc::EOPNOTSUPP))?;
        if request.opcode == BIND_MW {
            // SAFETY: the window exists. Its type is 2, so this function must set the field. (For a
            // window of type 1, `ibv_bind_mw` sets the field.)
            unsafe { (*request.bind_mw.mw).rkey = request.bind_mw.rkey };
        }
        Ok(done)
    }

    fn bind_info(&self, region: Object, offset: u64, length: u64, access: &[Access]) -> Result<MwBindInfo, Failure> {
        let region = self.find_region(region)?;
        let begin = if region.zero_based { 0 } else { region.memory.begin().addr() as u64 };
        Ok(MwBindInfo {
            mr: region.mr,
            addr: begin.wrapping_add(offset),
            length,
            mw_access_flags: flags(access).cast_unsigned(),
        })
    }

    /// Requests that the channel report the next completion or, if `solicited` is true, only the
    /// next solicited completion.
    pub(super) fn arm(&self, cq: *mut Cq, solicited: bool) -> Result<(), Failure> {
        // SAFETY: the queue and its device exist.
        let armed = unsafe { (*(*cq).context).ops.req_notify_cq.map(|notify| notify(cq, c_int::from(solicited))) };
        check("ibv_req_notify_cq", armed.unwrap_or(libc::EOPNOTSUPP))
    }

    pub(super) fn completion_events(&mut self, events: &mut Vec<Event>) {
        loop {
            let (mut cq, mut context): (*mut Cq, *mut c_void) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel does not block.
            if unsafe { (self.lib.ibv_get_cq_event)(self.completions, &raw mut cq, &raw mut context) } != 0 {
                return;
            }
            // SAFETY: the queue exists, because it is destroyed only after its events are
            // acknowledged.
            unsafe { (self.lib.ibv_ack_cq_events)(cq, 1) };
            // Request the next report before polling. A completion that arrives during the poll
            // then causes a new report.
            let connection = u32::try_from(context.addr()).unwrap_or(0);
            let solicited = self.find_connection(connection).is_ok_and(|connection| connection.solicited);
            if let Err(failure) = self.arm(cq, solicited) {
                let status = failure.errno.unwrap_or(0);
                events.push(Event::Failed { connection, kind: "ibv_req_notify_cq".to_owned(), status });
            }
            self.drain_completions(cq, connection, events);
        }
    }

    fn drain_completions(&mut self, cq: *mut Cq, connection: Object, events: &mut Vec<Event>) {
        let mut wcs = [Wc::default(); 16];
        loop {
            // SAFETY: the queue and its device exist, and the array has room for sixteen
            // completions.
            let got = unsafe { (*(*cq).context).ops.poll_cq.map_or(0, |poll| poll(cq, 16, wcs.as_mut_ptr())) };
            let Ok(got @ 1..) = usize::try_from(got) else { return };
            events.extend(wcs.iter().take(got).map(|wc| {
                Event::Completion(Completion {
                    connection,
                    work: wc.wr_id,
                    status: names::status(wc.status),
                    operation: names::operation(wc.opcode),
                    octets: wc.byte_len,
                    invalidated: (wc.status == 0 && wc.wc_flags & WITH_INV != 0).then_some(wc.invalidated_rkey),
                    immediate: None,
                    found: None,
                })
            }));
        }
    }

    /// Reads all asynchronous events of the device. Appends the events of this control connection
    /// to `events`.
    pub(super) fn asynchronous_events(&mut self, events: &mut Vec<Event>) {
        let Some(tester) = self.tester else { return };
        let mut router = router();
        loop {
            let mut event = AsyncEvent { element: ptr::null_mut(), event_type: 0 };
            // SAFETY: the descriptor does not block.
            if unsafe { (self.lib.ibv_get_async_event)(self.context, &raw mut event) } != 0 {
                break;
            }
            let owner = match event.event_type {
                // Events of completion queues, Queue Pairs and shared receive queues.
                0 | 1..=7 | 16 | 14 | 15 => EventOwner::Element(event.element.addr()),
                _ => EventOwner::All,
            };
            router.deliver(self.context.addr(), owner, &names::asynchronous(event.event_type));
            // SAFETY: the event came from the device.
            unsafe { (self.lib.ibv_ack_async_event)(&raw mut event) };
        }
        events.extend(router.take(tester));
    }
}

/// Returns the STag with the next key. The key is the lowest byte, which the consumer chooses.
fn next_stag(stag: u32) -> u32 {
    stag & 0xffff_ff00 | stag.wrapping_add(1) & 0xff
}

/// Binds a window of type 1 with `ibv_bind_mw`.
fn bind(
    pair: *mut Qp,
    window: *mut super::abi::Mw,
    work: u64,
    send_flags: c_uint,
    bind_info: MwBindInfo,
) -> Result<Success, Failure> {
    let mut request = MwBind { wr_id: work, send_flags, bind_info };
    // SAFETY: all objects exist and belong to one device.
    let bound = unsafe { (*(*pair).context).ops.bind_mw.map(|bind| bind(pair, window, &raw mut request)) };
    check("ibv_bind_mw", bound.unwrap_or(libc::EOPNOTSUPP))?;
    // SAFETY: the window exists. The verb has set its key.
    Ok(Success::Bound { remote_key: unsafe { (*window).rkey } })
}

fn no_bind() -> MwBindInfo {
    MwBindInfo { mr: ptr::null_mut(), addr: 0, length: 0, mw_access_flags: 0 }
}
