//! The loop between a screen and a real terminal, which only this module uses.

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

/// How often to look for keys and new data. Without keys, the screen is drawn at most this often.
const TICK: Duration = Duration::from_millis(40);

/// A screen: state that takes commands.
pub(crate) trait Screen {
    /// Takes a bounded number of messages of background threads; `true` if there were any.
    fn poll(&mut self) -> bool;
    /// Does the process request the end of the screen?
    fn is_closed(&self) -> bool {
        false
    }
    /// Handles a key of the input line; `false` if there is no input line.
    fn key(&mut self, key: KeyEvent) -> bool;
    /// Handles an action of the mouse.
    fn mouse(&mut self, mouse: Mouse);
    /// Executes a command; `false` ends the screen.
    fn command(&mut self, command: Command) -> bool;
}

/// Where keys come from: standard input, or the terminal if standard input is something else.
enum Keyboard {
    Stdin(io::Stdin),
    Terminal(File),
}

impl Keyboard {
    fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        Ok(if stdin.is_terminal() { Keyboard::Stdin(stdin) } else { Keyboard::Terminal(File::open("/dev/tty")?) })
    }

    /// Waits for a key, a mouse action or a new size.
    fn has_event(&self, at_most: Duration) -> io::Result<bool> {
        self.wait(Duration::ZERO)?;
        // crossterm keeps the other keys that it read together with the last one.
        if event::poll(Duration::ZERO)? {
            return Ok(true);
        }
        self.wait(at_most)?;
        event::poll(Duration::ZERO)
    }

    /// Waits for a key. After an error the terminal is gone: crossterm would read its end forever.
    fn wait(&self, at_most: Duration) -> io::Result<()> {
        let mut keyboard = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut keyboard, Some(&timeout)) {
            // Resizing the terminal is a signal.
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

/// Shows `screen` until it ends. Restores the terminal in any case, also after a panic.
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
            // A paste is many keys. They are drawn together.
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

/// Passes an event to the screen. Returns `false` if it ends the screen.
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
