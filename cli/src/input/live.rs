//! `-i`: captures the frames of an interface.
//!
//! weft opens the interface, drops all privileges ([`weft_capture::privilege`]), and only then
//! creates files and starts threads. Ctrl-C, SIGTERM and `-a` end the capture, but not the command:
//! weft still reads the frames that the kernel captured before the end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use weft_capture::privilege::{self, Dropped};
use weft_capture::{Drops, Live, OpenError, SNAP_LEN, Settings};
use weft_dissector::output::text::counted;
use weft_dissector::source::Frame;

use crate::exit::{BadInput, CommandFailure, HARNESS, note, reject};

use super::Next;
use super::quantity::Limits;
use super::save::{Ring, Saver, WrittenFiles};

/// Longest time between two flushes of the output, also on a busy interface.
const BATCH: Duration = Duration::from_millis(100);
/// After the end of the capture, weft waits this long for frames that were captured before the end.
/// The kernel delivers frames in batches ([`Settings`]). The wait is twice as long as a batch.
const FINAL_READ_TIME: Duration = Duration::from_millis(200);

/// The options of a live capture. Their letters are those of tshark.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Live capture")]
pub(crate) struct LiveArguments {
    /// Capture on this interface (name, or number from `weft dissect -D`) until Ctrl-C
    #[arg(short = 'i', long = "interface", value_name = "IF", id = "interface", conflicts_with = "read")]
    interface: Option<String>,
    /// Set a capture filter in libpcap's language, such as 'tcp port 7174'
    #[arg(short = 'f', value_name = "FILTER")]
    capture_filter: Option<String>,
    /// Keep only the first BYTES bytes of each frame; 0 keeps all bytes (default)
    #[arg(short = 's', long = "snapshot-length", value_name = "BYTES",
        value_parser = clap::value_parser!(u32).range(0..=i64::from(SNAP_LEN)))]
    snap_len: Option<u32>,
    /// Do not put the interface into promiscuous mode
    #[arg(short = 'p', long = "no-promiscuous-mode")]
    not_promiscuous: bool,
    /// Set the size of the kernel's capture buffer (default 32)
    #[arg(short = 'B', long = "buffer-size", value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=2047))]
    buffer: Option<u32>,
    /// Stop after duration:SECONDS, packets:N, filesize:KB or files:N; repeatable
    ///
    /// `filesize` and `files` work only in `weft dissect` and `weft tui`, because only these
    /// commands have the options -w and -b. `filesize` limits the total size of the files that -w
    /// writes. 1 KB has 1000 bytes. `files` limits the number of files that -b starts.
    #[arg(short = 'a', long = "autostop", value_name = "WHEN")]
    stop: Vec<String>,
    /// Whether to omit the notes about the start and the end of the capture.
    #[arg(skip)]
    is_quiet: bool,
}

impl LiveArguments {
    /// Makes the options of a capture for another program, which shows each line on standard error
    /// as an error. `snap_len` is the option `-s`.
    pub(crate) fn quiet(capture_filter: Option<String>, snap_len: Option<u32>) -> Self {
        LiveArguments {
            interface: None,
            capture_filter,
            snap_len,
            not_promiscuous: false,
            buffer: None,
            stop: Vec::new(),
            is_quiet: true,
        }
    }

    /// The interface of -i.
    pub(crate) fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// The interface and the capture filter, for the title of a screen.
    pub(crate) fn title(&self) -> String {
        let interface = self.interface.as_deref().unwrap_or_default();
        match &self.capture_filter {
            Some(filter) => format!("{interface}: {filter}"),
            None => interface.to_owned(),
        }
    }

    /// If there is no interface, rejects the options that need an interface. clap cannot reject
    /// these options if the command line has a file. The file excludes an interface, so clap no
    /// longer requires the interface.
    pub(crate) fn reject_without_interface(&self) -> Result<(), BadInput> {
        let letter = match () {
            () if self.capture_filter.is_some() => "-f",
            () if self.snap_len.is_some() => "-s",
            () if self.not_promiscuous => "-p",
            () if self.buffer.is_some() => "-B",
            () if !self.stop.is_empty() => "-a",
            () => return Ok(()),
        };
        Err(BadInput(format!("{letter} needs -i IF, because it is an option of live capture")))
    }

    /// Opens the interface, and creates the file for `write`.
    pub(super) fn open(
        &self,
        interface: &str,
        write: Option<(SaveDestination<'_>, Ring)>,
    ) -> anyhow::Result<LiveInput> {
        if interface == "-" {
            reject!("`-i -` does not name an interface; to read a capture from standard input, use `weft dissect -`");
        }
        let stop = stop_conditions(&self.stop)?;
        if stop.octets.is_some() && write.is_none() {
            reject!("-a filesize:KB needs -w, because it limits the size of the files that -w writes");
        }
        if stop.files.is_some() && !write.as_ref().is_some_and(|(_, ring)| ring.changes()) {
            reject!("-a files:N needs -w and -b, because it limits the number of files");
        }
        let interface = &numbered(interface);
        let mut settings = Settings::new(interface);
        settings.filter.clone_from(&self.capture_filter);
        settings.snap_len = self.snap_len.filter(|octets| *octets > 0).unwrap_or(SNAP_LEN);
        settings.promiscuous = !self.not_promiscuous;
        settings.buffer_mib = self.buffer.unwrap_or(settings.buffer_mib);
        let live = Live::open(&settings).map_err(|error| open_error(&error))?;
        let dropped = privilege::drop_all()
            .map_err(|error| anyhow::anyhow!("cannot drop the privileges for capturing: {error}"))?;
        let mut temporary = None;
        let saver = match write {
            Some((SaveDestination::Path(path), ring)) => Some(Saver::new(path, ring, live.link_type(), &settings)?),
            Some((SaveDestination::Temporary, ring)) => {
                let folder = tempfile::Builder::new()
                    .prefix("weft-")
                    .tempdir()
                    .map_err(|error| BadInput(format!("cannot create temporary files: {error}; use -w FILE")))?;
                let path = folder.path().join("capture.pcapng");
                temporary = Some(folder);
                Some(Saver::new(&path, ring, live.link_type(), &settings)?)
            }
            None => None,
        };
        let end = Arc::new(AtomicU64::new(u64::MAX));
        if let Some(after) = stop.duration {
            end.store(now().saturating_add(nanoseconds(after)), Relaxed);
        }
        let signalled = Arc::clone(&end);
        crate::signals::on_interrupt(move || {
            signalled.fetch_min(now(), Relaxed);
        })?;
        let cut = match self.snap_len {
            Some(octets @ 1..) => format!(", {} of each frame", counted(octets.into(), "byte")),
            _ => String::new(),
        };
        if !self.is_quiet {
            note(&format!("capturing on {interface}{cut}{}", dropped_text(dropped)));
        }
        Ok(LiveInput {
            is_quiet: self.is_quiet,
            link_type: live.link_type(),
            live,
            saver,
            stop,
            end,
            frames: 0,
            due: false,
            flushed: 0,
            over: None,
            failed: None,
            temporary,
            warned: false,
        })
    }
}

/// The progress of a live capture.
pub(crate) struct LiveProgress {
    pub(crate) frames: u64,
    pub(crate) drops: Drops,
    pub(crate) written: Option<WrittenFiles>,
    /// Why the capture ended, if neither the user nor a limit ended it.
    pub(crate) ended: Option<String>,
}

/// The part of a message that reports the dropped privileges.
fn dropped_text(dropped: Dropped) -> String {
    match dropped {
        Dropped::Nothing => String::new(),
        Dropped::Root { user } => format!("; running as user {user}, no longer as root"),
        Dropped::Capabilities => "; dropped all capabilities".to_owned(),
    }
}

/// Makes the error for a failed live capture. A wrong interface or filter is a usage error.
pub(crate) fn open_error(error: &OpenError) -> anyhow::Error {
    match error {
        OpenError::NoSuchInterface { .. } | OpenError::Filter { .. } => BadInput(error.to_string()).into(),
        OpenError::NotBuilt | OpenError::NotPermitted { .. } | OpenError::Other { .. } => {
            CommandFailure { code: HARNESS, text: error.to_string() }.into()
        }
    }
}

/// Parses the conditions that end a capture.
fn stop_conditions(words: &[String]) -> Result<Limits, BadInput> {
    Limits::read(words, "-a", "duration:SECONDS, packets:N, filesize:KB or files:N")
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The current time in nanoseconds since 1970. Frames have times of the same clock.
fn now() -> u64 {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// An open interface.
pub(super) struct LiveInput {
    live: Live,
    link_type: u16,
    saver: Option<Saver>,
    stop: Limits,
    /// Time at which the capture ends, in nanoseconds since 1970. weft ignores frames that are
    /// newer.
    end: Arc<AtomicU64>,
    frames: u64,
    /// Whether a flush is due before the next frame.
    due: bool,
    /// Time of the frame after which the last flush was due, in nanoseconds since 1970.
    flushed: u64,
    /// Why the capture ended, if neither the user nor a limit ended it.
    over: Option<String>,
    /// The error that ended the writing of frames.
    failed: Option<anyhow::Error>,
    /// The folder of temporary files. Dropping this value deletes the folder.
    temporary: Option<TempDir>,
    /// Whether the loss of frames was reported.
    warned: bool,
    /// Whether [`LiveInput::close`] prints nothing.
    is_quiet: bool,
}

/// Where to write captured frames.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SaveDestination<'a> {
    /// To the file with this path, or to a ring of files with similar paths.
    Path(&'a Path),
    /// To temporary files, which are deleted at the end.
    Temporary,
}

impl LiveInput {
    pub(super) fn next(&mut self) -> Next<'_> {
        if self.over.is_some() || self.failed.is_some() || self.is_full() {
            return Next::End;
        }
        if std::mem::take(&mut self.due) {
            return pause(&mut self.saver, &mut self.failed);
        }
        let end = self.end.load(Relaxed);
        match self.live.next_frame() {
            weft_capture::Next::Packet(packet) if packet.time > end => Next::End,
            weft_capture::Next::Packet(packet) if is_one_file_too_many(self.stop, self.saver.as_ref(), packet.time) => {
                Next::End
            }
            weft_capture::Next::Packet(packet) => {
                self.frames += 1;
                if packet.time.abs_diff(self.flushed) >= nanoseconds(BATCH) {
                    self.flushed = packet.time;
                    self.due = true;
                }
                let frame = Frame {
                    number: self.frames.into(),
                    time: packet.time,
                    interface: 0,
                    link_type: self.link_type,
                    octets: packet.octets,
                    wire_len: packet.wire_len,
                };
                if let Some(saver) = &mut self.saver
                    && let Err(error) = saver.frame(&frame)
                {
                    self.failed = Some(error);
                }
                Next::Frame(frame)
            }
            weft_capture::Next::Idle => {
                if now() >= end.saturating_add(nanoseconds(FINAL_READ_TIME)) {
                    Next::End
                } else {
                    pause(&mut self.saver, &mut self.failed)
                }
            }
            weft_capture::Next::Over(why) => {
                self.over = Some(why);
                Next::End
            }
        }
    }

    fn is_full(&self) -> bool {
        self.stop.packets.is_some_and(|packets| self.frames >= packets)
            || self.stop.octets.zip(self.saver.as_ref()).is_some_and(|(octets, saver)| saver.octets() >= octets)
            || is_one_file_too_many(self.stop, self.saver.as_ref(), 0)
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Ends the capture at this time, in nanoseconds since 1970, unless it ends before.
    pub(super) fn end_at(&self, time: u64) {
        self.end.fetch_min(time, Relaxed);
    }

    /// The captured, lost and written frames so far. Some of these frames can still be buffered,
    /// except after [`Next::Idle`].
    pub(super) fn progress(&mut self) -> LiveProgress {
        let ended = match (&self.failed, &self.over) {
            (Some(error), _) => Some(format!("{error:#}")),
            (None, Some(why)) => Some(format!("the capture ended after frame {}: {why}", self.frames)),
            (None, None) => None,
        };
        LiveProgress {
            frames: self.frames,
            drops: self.live.drops(),
            written: self.saver.as_ref().map(Saver::written),
            ended,
        }
    }

    /// Reports lost frames on standard error, once per capture. A report at the end would be too
    /// late for the user to react.
    pub(super) fn warn(&mut self, name: &str) {
        if self.warned {
            return;
        }
        let Drops { kernel, interface, .. } = self.live.drops();
        if kernel > 0 || interface > 0 {
            self.warned = true;
            note(&format!(
                "{name}: frames are being dropped, {kernel} by the kernel, {interface} by the interface so far; use \
                 a larger -B, a narrower -f, or -q -w FILE"
            ));
        }
    }

    /// Writes buffered frames to the file.
    pub(super) fn flush(&mut self) {
        pause(&mut self.saver, &mut self.failed);
    }

    /// Closes the written files, and prints the numbers of captured and lost frames.
    pub(super) fn close(mut self, name: &str) -> anyhow::Result<()> {
        if self.is_quiet {
            return self.close_quietly(name);
        }
        let drops = self.live.drops();
        if let Some(why) = &self.over {
            note(&format!("{name}: the capture ended after frame {}: {why}", self.frames));
        }
        let mut text = format!(
            "{name}: {} captured, {} dropped by the kernel, {} by the interface",
            counted(self.frames, "frame"),
            drops.kernel,
            drops.interface
        );
        let closed = match (self.failed.take(), self.saver.take()) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(()),
            (None, Some(saver)) => saver.finish().map(|written| {
                if self.temporary.is_none() {
                    text.push_str(&written);
                }
            }),
        };
        note(&text);
        closed
    }

    /// Closes the capture without a note. Fails if neither the user nor a limit ended the capture.
    fn close_quietly(self, name: &str) -> anyhow::Result<()> {
        match (self.failed, self.over) {
            (Some(error), _) => Err(error),
            (None, Some(why)) => {
                let text = format!("{name}: the capture ended after frame {}: {why}", self.frames);
                Err(CommandFailure { code: HARNESS, text }.into())
            }
            (None, None) => Ok(()),
        }
    }
}

/// Returns whether a frame with this time (nanoseconds since 1970) would start one file more than
/// `-a files:N` allows.
fn is_one_file_too_many(stop: Limits, saver: Option<&Saver>, time: u64) -> bool {
    stop.files.zip(saver).is_some_and(|(files, saver)| saver.files() >= files && saver.is_full(time))
}

/// Returns the name of the interface that has this number in the list of `-D`. If `interface` is
/// not a number, it is a name, and this function returns it unchanged.
fn numbered(interface: &str) -> String {
    let place = interface.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let all = place.and_then(|_| weft_capture::interfaces().ok()).unwrap_or_default();
    match place.and_then(|place| all.get(place)) {
        Some(found) if all.iter().all(|one| one.name != interface) => found.name.clone(),
        _ => interface.to_owned(),
    }
}

/// Flushes the written file, because no frame is ready or because a flush is due.
fn pause(saver: &mut Option<Saver>, failed: &mut Option<anyhow::Error>) -> Next<'static> {
    if let Some(Err(error)) = saver.as_mut().map(Saver::flush) {
        *failed = Some(error);
    }
    Next::Idle
}

#[cfg(test)]
mod tests {
    use weft_dissector::FrameNumber;
    use weft_dissector::link_type::ETHERNET;

    use super::*;

    fn stop(words: &[&str]) -> Result<Limits, BadInput> {
        stop_conditions(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn stops_after_the_last_file_of_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let ring = Ring::read(&["packets:1".to_owned()]).unwrap();
        let mut saver = Saver::new(&folder.path().join("x.pcapng"), ring, 1, &Settings::new("lo")).unwrap();
        let stop = stop(&["files:2"]).unwrap();
        let mut ends = Vec::new();
        for number in [1, 2].map(FrameNumber::from) {
            ends.push(is_one_file_too_many(stop, Some(&saver), 0));
            saver
                .frame(&Frame { number, time: 0, interface: 0, link_type: ETHERNET, octets: &[7; 60], wire_len: 60 })
                .unwrap();
        }
        ends.push(is_one_file_too_many(stop, Some(&saver), 0));
        assert_eq!((ends, saver.files()), (vec![false, false, true], 2));
        assert!(!is_one_file_too_many(stop, None, 0) && !is_one_file_too_many(Limits::default(), Some(&saver), 0));
    }

    #[test]
    fn an_interface_may_be_a_number() {
        assert_eq!((numbered("lo"), numbered("0"), numbered("99999")), ("lo".into(), "0".into(), "99999".into()));
        for (at, one) in weft_capture::interfaces().unwrap_or_default().iter().enumerate() {
            assert_eq!(numbered(&(at + 1).to_string()), one.name);
        }
    }

    #[test]
    fn parses_stop_conditions() {
        let read = stop(&["duration:1.5", "packets:7", "filesize:2", "files:3"]).unwrap();
        let duration = Some(Duration::from_millis(1500));
        let wanted = Limits { duration, packets: Some(7), octets: Some(2000), files: Some(3) };
        assert_eq!(read, wanted);
        for wrong in
            ["duration", "duration:", "duration:0", "duration:-1", "packets:1.5", "filesize:0", "files:0", "x:1"]
        {
            let error = stop(&[wrong]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("-a {wrong}: use duration:SECONDS")), "{error}");
        }
    }
}
