//! Work requests, and what comes of them.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

use super::abi::{AsyncEvent, Atomic, BindMw, Cq, MwBind, MwBindInfo, Qp, RecvWr, Remote, SendWr, Sge, Wc};
use super::names;
use super::nic::{Nic, Thing, check, flags};
use super::route::{Whose, router};
use crate::common::{no_pair, none};
use crate::protocol::{Access, Action, Completion, Done, Event, Failure, Object, Operation, Part};

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
    /// The parts of a work request on a queue that takes `most`. The libraries are not bound to
    /// look how many there are.
    fn sges(&self, parts: &[Part], most: u32) -> Result<Vec<Sge>, Failure> {
        if parts.len() > most as usize {
            return Err(Failure::of(format!("{} parts: the queue takes {most}", parts.len())));
        }
        let sge = |part: &Part| {
            let region = self.of_region(part.region)?;
            let begin = if region.zero_based { 0 } else { region.memory.begin().addr() as u64 };
            // SAFETY: the region is registered.
            let own = unsafe { (*region.mr).lkey };
            Ok(Sge { addr: begin.wrapping_add(part.offset), length: part.length, lkey: part.key.unwrap_or(own) })
        };
        parts.iter().map(sge).collect()
    }

    /// The same where the octets are taken while it is posted: by the library, from this process's
    /// own memory, which no device guards.
    fn inline_sges(&self, parts: &[Part], most: u32, octets: u32) -> Result<Vec<Sge>, Failure> {
        let mut sges = self.sges(parts, most)?;
        let total: u64 = parts.iter().map(|part| u64::from(part.length)).sum();
        if total > u64::from(octets) {
            return Err(Failure::of(format!("{total} bytes inline: the Queue Pair takes {octets}")));
        }
        for (part, sge) in parts.iter().zip(&mut sges) {
            let memory = &self.of_region(part.region)?.memory;
            let begin = memory.begin_of(part.offset, part.length.into());
            let begin = begin.ok_or_else(|| Failure::of("what goes inline has to lie in its region"))?;
            sge.addr = begin.addr() as u64;
        }
        Ok(sges)
    }

    fn queue_pair(&mut self, connection: Object) -> Result<*mut Qp, Failure> {
        let id = self.of_connection(connection)?.id;
        // SAFETY: an identifier of the table.
        let pair = unsafe { (*id).qp };
        if pair.is_null() {
            return Err(no_pair(connection));
        }
        Ok(pair)
    }

    pub(super) fn post_receive(&mut self, on: Object, work: u64, parts: &[Part]) -> Result<Done, Failure> {
        let most = match self.things.get(&on) {
            Some(Thing::Shared { parts, .. }) => *parts,
            _ => {
                self.queue_pair(on)?;
                self.of_connection(on)?.parts.1
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
        if let Some(Thing::Shared { queue, .. }) = self.things.get(&on) {
            // SAFETY: the queue and its device are there; the driver copies the request.
            let posted = unsafe {
                (*(**queue).context).ops.post_srq_recv.map(|post| post(*queue, &raw mut request, &raw mut bad))
            };
            return check("ibv_post_srq_recv", posted.unwrap_or(libc::EOPNOTSUPP)).map(|()| Done::Nothing);
        }
        let pair = self.queue_pair(on)?;
        // SAFETY: the queue and its device are there; the driver copies the request.
        let posted = unsafe { (*(*pair).context).ops.post_recv.map(|post| post(pair, &raw mut request, &raw mut bad)) };
        check("ibv_post_recv", posted.unwrap_or(libc::EOPNOTSUPP)).map(|()| Done::Nothing)
    }

    pub(super) fn post_send(&mut self, action: &Action) -> Result<Done, Failure> {
        let Action::PostSend { connection, work, operation, parts, signaled, fence, inline } = action else {
            return Err(Failure::of("no work request"));
        };
        let pair = self.queue_pair(*connection)?;
        let (most, octets) =
            self.of_connection(*connection).map(|connection| (connection.parts.0, connection.inline))?;
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
        let mut done = Done::Nothing;
        match operation {
            Operation::Send { solicited, invalidate } => {
                request.send_flags |= flag(*solicited, SOLICITED);
                if let Some(key) = invalidate {
                    (request.opcode, request.invalidate_rkey) = (SEND_WITH_INV, *key);
                    // libsiw (rdma-core 44) takes it from here. No other looks: this operation has
                    // no such member.
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
                let Some(Thing::Window { window, posted }) = self.things.get(window) else {
                    return Err(none(*window, "window"));
                };
                let (window, posted) = (*window, *posted);
                let bind_info = self.bind_info(*region, *offset, *length, access)?;
                if !posted {
                    return bind(pair, window, *work, send_flags, bind_info);
                }
                // SAFETY: the window is there.
                let key = next_stag(unsafe { (*window).rkey });
                (request.opcode, request.bind_mw) = (BIND_MW, BindMw { mw: window, rkey: key, bind_info });
                done = Done::Bound { remote_key: key };
            }
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the queue and its device are there; the driver copies the request.
        let posted = unsafe { (*(*pair).context).ops.post_send.map(|post| post(pair, &raw mut request, &raw mut bad)) };
        check("ibv_post_send", posted.unwrap_or(libc::EOPNOTSUPP))?;
        if request.opcode == BIND_MW {
            // SAFETY: the window is there; as ibv_bind_mw does it for the other type.
            unsafe { (*request.bind_mw.mw).rkey = request.bind_mw.rkey };
        }
        Ok(done)
    }

    fn bind_info(&self, region: Object, offset: u64, length: u64, access: &[Access]) -> Result<MwBindInfo, Failure> {
        let region = self.of_region(region)?;
        let begin = if region.zero_based { 0 } else { region.memory.begin().addr() as u64 };
        Ok(MwBindInfo {
            mr: region.mr,
            addr: begin.wrapping_add(offset),
            length,
            mw_access_flags: flags(access).cast_unsigned(),
        })
    }

    /// The next completion, or the next one that is solicited, is reported through the channel.
    pub(super) fn arm(&self, cq: *mut Cq, solicited: bool) -> Result<(), Failure> {
        // SAFETY: the queue and its device are there.
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
            // SAFETY: one event of a queue that is there: it is destroyed only once its events are acknowledged.
            unsafe { (self.lib.ibv_ack_cq_events)(cq, 1) };
            // Arm first, then poll: completions in between are reported again.
            let connection = u32::try_from(context.addr()).unwrap_or(0);
            let solicited = self.of_connection(connection).is_ok_and(|connection| connection.solicited);
            if let Err(failure) = self.arm(cq, solicited) {
                let status = failure.errno.unwrap_or(0);
                events.push(Event::Failed { connection, kind: "ibv_req_notify_cq".to_owned(), status });
            }
            self.empty(cq, connection, events);
        }
    }

    fn empty(&mut self, cq: *mut Cq, connection: Object, events: &mut Vec<Event>) {
        let mut wcs = [Wc::default(); 16];
        loop {
            // SAFETY: the queue and its device are there, and room for sixteen.
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

    /// Reads all events of the device, and takes those of this control connection.
    pub(super) fn asynchronous_events(&mut self, events: &mut Vec<Event>) {
        let Some(tester) = self.tester else { return };
        let mut router = router();
        loop {
            let mut event = AsyncEvent { element: ptr::null_mut(), event_type: 0 };
            // SAFETY: the descriptor does not block.
            if unsafe { (self.lib.ibv_get_async_event)(self.context(), &raw mut event) } != 0 {
                break;
            }
            let whose = match event.event_type {
                // A completion queue's; a Queue Pair's; a shared receive queue's.
                0 | 1..=7 | 16 | 14 | 15 => Whose::Element(event.element.addr()),
                _ => Whose::All,
            };
            router.deliver(self.context().addr(), whose, &names::asynchronous(event.event_type));
            // SAFETY: it came from the device.
            unsafe { (self.lib.ibv_ack_async_event)(&raw mut event) };
        }
        events.extend(router.take(tester));
    }
}

/// The last octet is the consumer's.
fn next_stag(stag: u32) -> u32 {
    stag & 0xffff_ff00 | stag.wrapping_add(1) & 0xff
}

/// Binds a window of type 1, by the verb.
fn bind(
    pair: *mut Qp,
    window: *mut super::abi::Mw,
    work: u64,
    send_flags: c_uint,
    bind_info: MwBindInfo,
) -> Result<Done, Failure> {
    let mut request = MwBind { wr_id: work, send_flags, bind_info };
    // SAFETY: all of one device, and there.
    let bound = unsafe { (*(*pair).context).ops.bind_mw.map(|bind| bind(pair, window, &raw mut request)) };
    check("ibv_bind_mw", bound.unwrap_or(libc::EOPNOTSUPP))?;
    // SAFETY: the verb has written it.
    Ok(Done::Bound { remote_key: unsafe { (*window).rkey } })
}

fn no_bind() -> MwBindInfo {
    MwBindInfo { mr: ptr::null_mut(), addr: 0, length: 0, mw_access_flags: 0 }
}
