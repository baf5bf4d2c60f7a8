//! What a socket has beside reading and writing: peeking, complete receives, Out-Of-Band data, its
//! buffers' sizes, its halves, its statistics.

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};

use super::SdpStream;
use super::statistics::Statistics;
use crate::sdp::Half;

/// Reading beside the stream. As with tokio's sockets, of the tasks that wait to read (or peek)
/// only the one that polled last is woken, and of those that wait to write, too.
impl SdpStream {
    /// Copies what has arrived, as far as it fits, and leaves it to be read; waits when nothing is
    /// there. 0 octets: the end of the stream, or `to` is empty.
    ///
    /// # Errors
    /// As reading.
    pub async fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_peek(cx, to)).await
    }

    /// [`peek`](Self::peek), to be polled.
    ///
    /// # Errors
    /// As reading.
    pub fn poll_peek(&self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut engine = self.lock();
        let Some(read) = engine.read(to, true) else {
            engine.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready(Ok(read?))
    }
}

/// A receive that waits for all of its bytes (MSG_WAITALL; section 9.3). No part of it is ever
/// advertised: the data arrives in receives that are posted ahead, each of which may end with fewer
/// bytes.
impl SdpStream {
    /// Fills `to`, and returns the number of bytes. The number is smaller if the stream ends or
    /// breaks first, or at an Out-Of-Band byte: the next call continues after it. If the future is
    /// dropped before its end, its data is lost.
    ///
    /// # Errors
    /// As reading, where there is no octet in front of the error.
    pub async fn receive_all(&self, to: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        poll_fn(|cx| self.poll_receive_all(cx, to, &mut filled)).await
    }

    /// [`receive_all`](Self::receive_all), to be polled; `filled` is how many octets `to` has
    /// by then, 0 at first.
    ///
    /// # Errors
    /// As reading, where there is no octet in front of the error.
    pub fn poll_receive_all(&self, cx: &mut Context<'_>, to: &mut [u8], filled: &mut usize) -> Poll<io::Result<usize>> {
        let mut engine = self.lock();
        while let Some(rest) = to.get_mut(*filled..).filter(|rest| !rest.is_empty()) {
            // A read ends in front of such an octet; it does not begin there but for this receive's
            // own beginning.
            if *filled > 0 && engine.arrived.at_mark() {
                break;
            }
            match engine.read(rest, false) {
                None => {
                    engine.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Some(Ok(0)) => break,
                Some(Ok(read)) => {
                    *filled += read;
                    self.go(&mut engine);
                }
                Some(Err(error)) if *filled == 0 => return Poll::Ready(Err(error.into())),
                // The next one is reported.
                Some(Err(_)) => break,
            }
        }
        Poll::Ready(Ok(*filled))
    }
}

/// Out-Of-Band data (section 9.5.3), as sockets have it. A read ends in front of an Out-Of-Band
/// octet, or of the place where it was; the next one continues after it.
impl SdpStream {
    /// Writes all octets; the last one is Out-Of-Band data (MSG_OOB). When it is dropped before its
    /// end some may be written, without the Out-Of-Band octet.
    ///
    /// # Errors
    /// As writing.
    pub async fn send_urgent(&self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let written = poll_fn(|cx| self.poll_send_urgent(cx, octets)).await?;
            octets = octets.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Takes as many octets as there is room for; when it takes all, the last one is Out-Of-Band
    /// data.
    ///
    /// # Errors
    /// As writing.
    pub fn poll_send_urgent(&self, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(octets)], true)
    }

    /// Waits until Out-Of-Band data is announced, or here and not read. `false`: the connection is
    /// over, and there is none.
    pub async fn urgent(&self) -> bool {
        poll_fn(|cx| self.poll_urgent(cx)).await
    }

    /// [`urgent`](Self::urgent), to be polled.
    pub fn poll_urgent(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut engine = self.lock();
        if engine.arrived.has_urgent() {
            return Poll::Ready(true);
        }
        if engine.gone || engine.ended {
            return Poll::Ready(false);
        }
        engine.watch(cx.waker());
        Poll::Pending
    }

    /// Takes the newest Out-Of-Band octet (a receive with MSG_OOB); one that a newer one followed
    /// is lost.
    ///
    /// # Errors
    /// `WouldBlock`: it is announced, and has not arrived. `InvalidInput`: there is none, or it
    /// stays in the stream.
    pub fn receive_urgent(&self) -> io::Result<u8> {
        Ok(self.lock().take_urgent()?)
    }

    /// The next read begins at the place of an Out-Of-Band octet (sockatmark).
    #[must_use]
    pub fn at_mark(&self) -> bool {
        self.lock().arrived.at_mark()
    }

    /// Reads as any read does, but an Out-Of-Band octet that is in the stream comes alone, with
    /// `true`. 0 octets: the end of the stream, or `to` is empty.
    ///
    /// # Errors
    /// As reading.
    pub async fn read_marked(&self, to: &mut [u8]) -> io::Result<(usize, bool)> {
        poll_fn(|cx| {
            let mut engine = self.lock();
            let urgent = engine.arrived.inline && engine.arrived.at_mark();
            let most = if urgent { to.len().min(1) } else { to.len() };
            let Some(read) = engine.read(to.get_mut(..most).unwrap_or_default(), false) else {
                engine.reader = Some(cx.waker().clone());
                return Poll::Pending;
            };
            let read = read?;
            self.go(&mut engine);
            Poll::Ready(Ok((read, urgent && read > 0)))
        })
        .await
    }

    /// Out-Of-Band octets that arrive from now on stay in the stream (SO_OOBINLINE). Not so at
    /// first.
    pub fn set_oob_inline(&self, inline: bool) {
        self.lock().arrived.inline = inline;
    }

    /// Do Out-Of-Band octets stay in the stream?
    #[must_use]
    pub fn oob_inline(&self) -> bool {
        self.lock().arrived.inline
    }
}

/// Buffers, halves and figures.
impl SdpStream {
    /// Octets that may be written and not be out yet (SO_SNDBUF), at least 1.
    #[must_use]
    pub fn send_buffer(&self) -> usize {
        self.lock().settings.send_buffer
    }

    /// Sets [`send_buffer`](Self::send_buffer). What is written already stays.
    pub fn set_send_buffer(&self, octets: usize) {
        self.lock().set_send_buffer(octets);
    }

    /// Octets of the receives that are posted ahead (SO_RCVBUF): a multiple of
    /// [`receive`](super::SdpSettings::receive).
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        let engine = self.lock();
        engine.settings.receives.saturating_mul(engine.settings.receive)
    }

    /// Sets [`receive_buffer`](Self::receive_buffer), to the next multiple, one receive at least
    /// and 4096 at most. A smaller one counts when receives that are posted have ended.
    pub fn set_receive_buffer(&self, octets: usize) {
        let mut engine = self.lock();
        engine.set_receive_buffer(octets);
        self.go(&mut engine);
    }

    /// Ends one half. `Out`: written data is still sent, then a DisConn; writing fails with
    /// `BrokenPipe`. `In`: reads return 0 bytes, and arriving data is dropped; the peer does not
    /// notice it.
    pub fn shut_down(&self, half: Half) {
        let mut engine = self.lock();
        match half {
            Half::Out => engine.machine.shut_down(),
            Half::In => engine.stop_reading(),
        }
        self.go(&mut engine);
    }

    /// Its state, and its counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.lock().statistics()
    }
}
