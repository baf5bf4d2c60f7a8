//! The loop that passes keys to a screen and draws the screen. Only this module uses a real
//! terminal.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event, KeyEvent};
use ratatui::crossterm::execute;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::command::{Command, command};
use crate::mouse::{Mouse, mouse};
use crate::view::Draw;

/// Interval at which the loop checks for keys and new data. While no key arrives, the interval
/// between two drawings is at least this long.
const TICK: Duration = Duration::from_millis(40);

/// A screen: state that takes commands.
pub(crate) trait Screen {
    /// Takes a bounded number of messages of background threads. Returns whether the screen
    /// changed.
    fn poll(&mut self) -> bool;
    /// Returns whether the process requested to close the screen.
    fn is_closed(&self) -> bool {
        false
    }
    /// Handles a key if there is an input line. Returns `false` if there is no input line.
    fn key(&mut self, key: KeyEvent) -> bool;
    /// Handles an action of the mouse.
    fn mouse(&mut self, mouse: Mouse);
    /// Executes a command. Returns `false` if the command ends the screen.
    fn command(&mut self, command: Command) -> bool;
}

/// The file from which keys are read: standard input, or the terminal if standard input is not a
/// terminal.
enum Keyboard {
    Stdin(io::Stdin),
    Terminal(File),
}

impl Keyboard {
    fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        Ok(if stdin.is_terminal() { Keyboard::Stdin(stdin) } else { Keyboard::Terminal(File::open("/dev/tty")?) })
    }

    /// Waits for a key, a mouse action or a new size, at most for the time `at_most`. Returns
    /// whether there is such an event.
    fn has_event(&self, at_most: Duration) -> io::Result<bool> {
        self.wait(Duration::ZERO)?;
        // If crossterm has read several keys at once, it can still have some of them.
        if event::poll(Duration::ZERO)? {
            return Ok(true);
        }
        self.wait(at_most)?;
        event::poll(Duration::ZERO)
    }

    /// Waits for input. Returns an error if the terminal is closed. Without this check, crossterm
    /// would read the end of the file forever.
    fn wait(&self, at_most: Duration) -> io::Result<()> {
        let mut keyboard = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut keyboard, Some(&timeout)) {
            // If the terminal gets a new size, a signal interrupts the wait.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if keyboard[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
        }
        Ok(())
    }
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Keyboard::Stdin(stdin) => stdin.as_fd(),
            Keyboard::Terminal(file) => file.as_fd(),
        }
    }
}

/// Shows `screen` until the user or the process ends the screen. Always restores the terminal, also
/// after a panic.
pub(crate) fn show(screen: &mut (impl Screen + Draw)) -> io::Result<()> {
    let keyboard = Keyboard::open()?;
    let mut terminal = ratatui::try_init()?;
    let restore = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _ = execute!(io::stdout(), DisableMouseCapture);
        restore(info);
    }));
    execute!(io::stdout(), EnableMouseCapture)?;
    let ended = (|| {
        let mut changed = true;
        let mut drawn: Option<Instant> = None;
        loop {
            let is_busy = screen.poll();
            changed |= is_busy;
            if screen.is_closed() {
                return Ok(());
            }
            let rest = drawn.map_or(Duration::ZERO, |drawn| TICK.saturating_sub(drawn.elapsed()));
            if changed && rest.is_zero() {
                terminal.draw(|frame| screen.draw(frame))?;
                (changed, drawn) = (false, Some(Instant::now()));
            }
            let wait = if is_busy {
                Duration::ZERO
            } else if changed {
                rest
            } else {
                TICK
            };
            let mut has_event = keyboard.has_event(wait)?;
            // If the user pastes text, many keys arrive. Handle them before the next drawing.
            let until = Instant::now() + TICK;
            while has_event {
                drawn = None;
                if !handle(screen, &event::read()?, &mut changed) {
                    return Ok(());
                }
                has_event = Instant::now() < until && keyboard.has_event(Duration::ZERO)?;
            }
        }
    })();
    execute!(io::stdout(), DisableMouseCapture)?;
    ratatui::try_restore()?;
    ended
}

/// Passes an event to the screen. Returns `false` if the event ends the screen.
fn handle(screen: &mut impl Screen, event: &Event, changed: &mut bool) -> bool {
    match event {
        Event::Key(key) => {
            if screen.key(*key) {
                *changed = true;
            } else if let Some(command) = command(*key) {
                *changed = true;
                return screen.command(command);
            }
        }
        Event::Resize(..) => *changed = true,
        Event::Mouse(event) => {
            if let Some(mouse) = mouse(*event) {
                *changed = true;
                screen.mouse(mouse);
            }
        }
        Event::FocusGained | Event::FocusLost | Event::Paste(_) => {}
    }
    true
}
