//! The calls of a socket other than reading and writing: peeking, complete receives, Out-Of-Band
//! data, buffer sizes, half-close, statistics. Section numbers are those of the SDP draft.

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};

use super::SdpStream;
use super::statistics::Statistics;
use crate::sdp::Half;

/// Peeking. If several tasks poll to read or to peek, only the last of these tasks is woken. The
/// same is true for tasks that poll to write. tokio's sockets act in the same way.
impl SdpStream {
    /// Copies arrived data until `to` is full or all of the data is copied. The data stays in the
    /// stream. Waits if no data has arrived. Returns 0 at the end of the stream, or if `to` is
    /// empty.
    ///
    /// # Errors
    /// The same errors as reading.
    pub async fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_peek(cx, to)).await
    }

    /// The poll function of [`peek`](Self::peek).
    ///
    /// # Errors
    /// The same errors as reading.
    pub fn poll_peek(&self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut engine = self.lock();
        let Some(read) = engine.read(to, true) else {
            engine.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready(Ok(read?))
    }
}

/// A call that waits until the user's buffer is full (MSG_WAITALL; section 9.3). The user's buffer
/// is never advertised. The data arrives in receives that are posted ahead, which means before the
/// user reads. A posted receive can end before it is full.
impl SdpStream {
    /// Fills `to`, and returns the number of bytes. The number is smaller than the size of `to` if
    /// the stream ends or breaks, or if an Out-Of-Band byte follows. The next call then begins at
    /// the position of that byte. If the future is dropped before it completes, the bytes that it
    /// has read are lost.
    ///
    /// # Errors
    /// The same errors as reading, if the error occurs before the first byte.
    pub async fn receive_all(&self, to: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        poll_fn(|cx| self.poll_receive_all(cx, to, &mut filled)).await
    }

    /// The poll function of [`receive_all`](Self::receive_all). `filled` is the number of bytes in
    /// `to` so far. Start with 0.
    ///
    /// # Errors
    /// The same errors as reading, if the error occurs before the first byte.
    pub fn poll_receive_all(&self, cx: &mut Context<'_>, to: &mut [u8], filled: &mut usize) -> Poll<io::Result<usize>> {
        let mut engine = self.lock();
        while let Some(rest) = to.get_mut(*filled..).filter(|rest| !rest.is_empty()) {
            // A read stops before an Out-Of-Band byte. Only the first read of this call may begin
            // at an Out-Of-Band byte.
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
                // The next call returns the error.
                Some(Err(_)) => break,
            }
        }
        Poll::Ready(Ok(*filled))
    }
}

/// Out-Of-Band data (section 9.5.3), which acts like the Out-Of-Band data of TCP sockets. A read
/// stops before an Out-Of-Band byte, or at the position from which an Out-Of-Band byte was removed.
/// The next read begins at that position.
impl SdpStream {
    /// Writes all bytes. The last byte is Out-Of-Band data (MSG_OOB). If the future is dropped
    /// before it completes, some of the bytes are possibly written, but not the Out-Of-Band byte.
    ///
    /// # Errors
    /// The same errors as writing.
    pub async fn send_urgent(&self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let written = poll_fn(|cx| self.poll_send_urgent(cx, octets)).await?;
            octets = octets.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Accepts at most the number of bytes that fits in the send buffer. If all bytes are accepted,
    /// the last byte is Out-Of-Band data.
    ///
    /// # Errors
    /// The same errors as writing.
    pub fn poll_send_urgent(&self, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(octets)], true)
    }

    /// Waits until Out-Of-Band data is announced, or has arrived and is not read. Returns `false`
    /// if there is no Out-Of-Band data and the stream has ended.
    pub async fn urgent(&self) -> bool {
        poll_fn(|cx| self.poll_urgent(cx)).await
    }

    /// The poll function of [`urgent`](Self::urgent).
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

    /// Takes the newest Out-Of-Band byte (a receive with MSG_OOB). An older Out-Of-Band byte that
    /// was not taken is lost.
    ///
    /// # Errors
    /// `WouldBlock` if the byte is announced and has not arrived. `InvalidInput` if there is no
    /// Out-Of-Band byte, or if Out-Of-Band bytes stay in the stream.
    pub fn receive_urgent(&self) -> io::Result<u8> {
        Ok(self.lock().take_urgent()?)
    }

    /// Returns whether the next read begins at the position of an Out-Of-Band byte (sockatmark).
    #[must_use]
    pub fn at_mark(&self) -> bool {
        self.lock().arrived.at_mark()
    }

    /// Reads like any other read. If the next byte is an Out-Of-Band byte that stays in the stream,
    /// returns only this byte. The second value is `true` for an Out-Of-Band byte. Returns 0 bytes
    /// at the end of the stream, or if `to` is empty.
    ///
    /// # Errors
    /// The same errors as reading.
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

    /// Sets whether Out-Of-Band bytes that arrive from now on stay in the stream (SO_OOBINLINE).
    /// The initial value is [`oob_inline`](super::SdpSettings::oob_inline).
    pub fn set_oob_inline(&self, inline: bool) {
        self.lock().arrived.inline = inline;
    }

    /// Returns whether Out-Of-Band bytes stay in the stream.
    #[must_use]
    pub fn oob_inline(&self) -> bool {
        self.lock().arrived.inline
    }
}

/// Buffer sizes, half-close and statistics.
impl SdpStream {
    /// Returns the maximum number of bytes that are written and not sent yet (SO_SNDBUF). This
    /// number is at least 1.
    #[must_use]
    pub fn send_buffer(&self) -> usize {
        self.lock().settings.send_buffer
    }

    /// Sets [`send_buffer`](Self::send_buffer). Data that is already in the buffer stays.
    pub fn set_send_buffer(&self, octets: usize) {
        self.lock().set_send_buffer(octets);
    }

    /// Returns the total size in bytes of the receives that are posted ahead (SO_RCVBUF): a
    /// multiple of [`receive`](super::SdpSettings::receive).
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        let engine = self.lock();
        engine.settings.receives.saturating_mul(engine.settings.receive)
    }

    /// Sets [`receive_buffer`](Self::receive_buffer). The value is rounded up to a multiple of
    /// [`receive`](super::SdpSettings::receive). The minimum is 1 receive, and the maximum is 4096
    /// receives. If the value is smaller than before, it takes effect when posted receives end.
    pub fn set_receive_buffer(&self, octets: usize) {
        self.change(|engine| engine.set_receive_buffer(octets));
    }

    /// Ends one half of the connection. With `Out`, this side still sends written data and then a
    /// DisConn. Further writes fail with `BrokenPipe`. With `In`, reads return 0 bytes, arriving
    /// data is dropped, and the peer is not informed.
    pub fn shut_down(&self, half: Half) {
        self.change(|engine| match half {
            Half::Out => engine.machine.shut_down(),
            Half::In => engine.stop_reading(),
        });
    }

    /// Returns the connection's state and counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.lock().statistics()
    }
}
