//! The line that is shown while a model is silent, and removed when output arrives.

use std::time::{Duration, Instant};

use repertoire_agent::EventKind;

use crate::ui::{self, TerminalUi};

/// Time without output after which the waiting line is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// The model or agent that the run waits for.
#[derive(Debug, Default)]
pub(super) struct WaitingLine {
    /// An external agent. Such agents report tool calls, but not their calls of a model.
    agent: Option<String>,
    whom: Option<(String, Instant)>,
    is_shown: bool,
}

impl WaitingLine {
    /// Updates the state from an event.
    pub(super) fn record_event(&mut self, kind: &EventKind, now: Instant) {
        match kind {
            EventKind::RunStarted { backend, .. } if backend != "api" => {
                self.agent = Some(backend.clone());
                self.whom = Some((backend.clone(), now));
            }
            EventKind::ModelCall { model, .. } => self.whom = Some((model.clone(), now)),
            EventKind::ToolResult { .. } => self.whom = self.agent.clone().map(|name| (name, now)),
            EventKind::Text { .. }
            | EventKind::Answer { .. }
            | EventKind::ToolCall { .. }
            | EventKind::RunFinished { .. } => self.whom = None,
            _ => {}
        }
    }

    /// Shows the waiting line, if the silence has lasted long enough.
    pub(super) fn show_if_due(
        &mut self,
        now: Instant,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let Some((whom, since)) = &self.whom else { return Ok(()) };
        let silent = now.saturating_duration_since(*since);
        if silent < PATIENCE {
            return Ok(());
        }
        let line = format!("waiting for {} {} s", ui::fit_columns(whom, 50), silent.as_secs());
        let line = ui.paint_err(ui::FAINT, line);
        self.is_shown = true;
        write!(ui.err, "\r\u{1b}[K{line}")?;
        ui.err.flush()
    }

    /// Removes the waiting line.
    pub(super) fn clear(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if std::mem::take(&mut self.is_shown) { write!(ui.err, "\r\u{1b}[K") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_model_is_named_until_something_comes() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ui = TerminalUi {
            out: &mut out,
            err: &mut err,
            colour: false,
            err_colour: false,
            columns: 80,
            json: false,
        };
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut waiting = WaitingLine::default();
        let model = "compat/slow".to_owned();
        waiting.record_event(&EventKind::ModelCall { model, iteration: 1, attempt: 1 }, begun);
        waiting.show_if_due(after(1), &mut ui).unwrap();
        waiting.show_if_due(after(12), &mut ui).unwrap();
        waiting.clear(&mut ui).unwrap();
        waiting.record_event(&EventKind::Text { text: "Hm".to_owned() }, after(13));
        waiting.show_if_due(after(20), &mut ui).unwrap();
        let shown = String::from_utf8(err).unwrap();
        assert_eq!(shown, "\r\u{1b}[Kwaiting for compat/slow 12 s\r\u{1b}[K");
    }
}
