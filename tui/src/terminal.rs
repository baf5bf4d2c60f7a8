//! The loop between a screen and a real terminal; nothing else in this crate knows one.

use std::io;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event, KeyEvent};
use ratatui::crossterm::execute;

use crate::command::{Command, command};
use crate::mouse::{Mouse, mouse};

/// A key or new data is looked for this often; the screen is drawn no more often, but for keys.
const TICK: Duration = Duration::from_millis(40);

/// A whole screen: state that takes commands and draws itself.
pub(crate) trait Screen {
    /// Takes what background threads have ready, a bounded amount at a time. `true` when there was something.
    fn poll(&mut self) -> bool;
    /// Takes a key while a line is typed; `false` when none is.
    fn key(&mut self, key: KeyEvent) -> bool;
    /// Takes what the mouse did.
    fn mouse(&mut self, mouse: Mouse);
    /// Does what the user wants; `false` ends the screen.
    fn command(&mut self, command: Command) -> bool;
    /// Draws.
    fn draw(&mut self, frame: &mut Frame<'_>);
}

/// Shows `screen` until it ends. The terminal is restored on every way out, a panic too.
pub(crate) fn show(screen: &mut dyn Screen) -> io::Result<()> {
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
            if event::poll(wait)? {
                drawn = None;
                match event::read()? {
                    Event::Key(key) => {
                        if screen.key(key) {
                            changed = true;
                        } else if let Some(command) = command(key) {
                            changed = true;
                            if !screen.command(command) {
                                return Ok(());
                            }
                        }
                    }
                    Event::Resize(..) => changed = true,
                    Event::Mouse(event) => {
                        if let Some(mouse) = mouse(event) {
                            changed = true;
                            screen.mouse(mouse);
                        }
                    }
                    Event::FocusGained | Event::FocusLost | Event::Paste(_) => {}
                }
            }
        }
    })();
    execute!(io::stdout(), DisableMouseCapture)?;
    ratatui::try_restore()?;
    ended
}
