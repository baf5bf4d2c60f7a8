//! The layout of the run screen.

use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use weft_suites::model::{RunStatus, Verdict};

use super::{Draw, bar, case, cases, help, input_line, line};
use crate::run::Screen;
use crate::wrap::wrap;

/// The maximum number of lines with reasons for the exit code. Reports have all reasons.
const MAX_REASONS: usize = 3;

impl Draw for Screen {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        draw(self, frame.area(), frame.buffer_mut());
    }
}

fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let reasons = reasons_lines(screen, area.width);
    let height = u16::try_from(reasons.len()).unwrap_or(u16::MAX);
    let rows = [1, 1, height].map(Constraint::Length).into_iter().chain([Constraint::Fill(1), Constraint::Length(1)]);
    let [header, counters, why, middle, footer] = Layout::vertical(rows).areas(area);
    let [left, right] = Layout::horizontal([Constraint::Fill(2), Constraint::Fill(3)]).areas(middle);
    header_line(screen, header, buf);
    counters_line(screen, counters, buf);
    for (row, words) in reasons.iter().enumerate() {
        line(&Line::raw(format!(" {words}")), row, Style::new(), why, buf);
    }
    cases::draw(screen, left, buf);
    case::draw(screen, right, buf);
    footer_line(screen, footer, buf);
    if screen.help {
        let about = "The selection follows the run until you move. A verdict is pass, fail, inconclusive (the \
                     observations do not decide), error (the tester failed), not-applicable or unimplemented.";
        help::draw(true, about, screen.theme, area, buf);
    }
}

fn header_line(screen: &Screen, area: Rect, buf: &mut Buffer) {
    let left = match &screen.progress.run {
        Some(run) => {
            let deviations = match run.target.deviations.as_slice() {
                [] => String::new(),
                some => format!(", deviating: {}", some.join(", ")),
            };
            format!(" weft  {} ({}, {}{deviations})", run.target.name, run.target.reached_by, run.target.role)
        }
        None => " weft  the run has not started".to_owned(),
    };
    let right = screen.progress.run.as_ref().map_or_else(String::new, |run| format!("{} ", run.id));
    bar(&left, &right, screen.theme.heading(), area, buf);
}

fn counters_line(screen: &Screen, area: Rect, buf: &mut Buffer) {
    let counts = &screen.progress.counts;
    let planned = screen.progress.planned.len();
    let mut spans = vec![Span::raw(format!(" {}  {}/{planned} ", screen.progress.status(), counts.total()))];
    for verdict in Verdict::ALL {
        let count = counts.of(verdict);
        if count > 0 || matches!(verdict, Verdict::Pass | Verdict::Fail) {
            spans.push(Span::styled(format!("  {verdict} {count}"), screen.theme.verdict(verdict)));
        }
    }
    if let Some(rounds) = screen.rounds {
        spans.push(Span::styled(format!("   {}", rounds.text()), screen.theme.heading()));
    }
    if let Some((ran, left)) = screen.progress.times(screen.now) {
        let left = left.map_or_else(String::new, |left| format!(", about {} left", clock(left)));
        spans.push(Span::raw(format!("   {} so far{left}", clock(ran))));
    }
    if let Some(summary) = &screen.progress.summary {
        let (seconds, milliseconds) = (summary.duration_us / 1_000_000, summary.duration_us / 1_000 % 1_000);
        spans.push(Span::raw(format!("   {seconds}.{milliseconds:03} s   exit code {}", summary.exit_code.code())));
    }
    line(&Line::from(spans), 0, Style::new(), area, buf);
}

/// Formats a time as seconds, or as minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{}:{:02} min", seconds / 60, seconds % 60) }
}

/// Returns the reasons for the exit code, in lines of this width.
fn reasons_lines(screen: &Screen, width: u16) -> Vec<String> {
    let reasons = match &screen.progress.summary {
        Some(summary) => summary.reasons.join("; "),
        None => screen.progress.target_down.clone().unwrap_or_default(),
    };
    let mut lines = wrap(&reasons, usize::from(width).saturating_sub(2));
    if lines.len() > MAX_REASONS
        && let Some(last) = lines.get_mut(MAX_REASONS - 1)
    {
        last.push('…');
    }
    lines.truncate(MAX_REASONS);
    lines
}

fn footer_line(screen: &Screen, area: Rect, buf: &mut Buffer) {
    if let Some(typed) = &screen.input_line {
        return input_line::draw(typed, screen.theme, area, area, buf);
    }
    if let Some(notice) = &screen.notice {
        return bar(&format!(" {notice}"), "", screen.theme.verdict(Verdict::Inconclusive), area, buf);
    }
    if screen.is_broken {
        let words = " The run ended early; finished results remain. q quits and prints the reason.";
        return bar(words, "", screen.theme.verdict(Verdict::Error), area, buf);
    }
    let waits = screen.progress.waits_for.as_ref().filter(|_| screen.progress.status() == RunStatus::WaitingForTarget);
    match (waits, &screen.starter) {
        (Some(waits), _) => {
            let words = format!(" waiting for the target: {}", waits.what);
            bar(&words, "", screen.theme.verdict(Verdict::Inconclusive), area, buf);
        }
        (None, Some(_)) if screen.progress.summary.is_none() || screen.rounds.is_some() => {
            bar(
                " Tab panel  j/k move  n failure  / search  s stop  ? help  q quit",
                "",
                screen.theme.faint(),
                area,
                buf,
            );
        }
        (None, Some(_)) => {
            let words = " Tab panel  n failure  / search  r rerun  R rerun failed  u until failure  ? help  q quit";
            bar(words, "", screen.theme.faint(), area, buf);
        }
        (None, None) => {
            bar(" Tab panel  j/k move  n failure  / search  ? help  q quit", "", screen.theme.faint(), area, buf);
        }
    }
}
