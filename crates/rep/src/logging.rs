//! Logs of what the program does, on standard error: off unless `--log` or `RUST_LOG` asks for them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::env::CliEnvironment;
use crate::failure::CliFailure;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    /// One JSON object per line, for the programs that collect the logs of a daemon.
    Json,
}

/// Starts logging, if the user asked for it. Each span is one line when it ends, with its duration.
///
/// # Errors
///
/// If `RUST_LOG` cannot be parsed, or standard error is closed.
pub(crate) fn start_logging(
    env: &CliEnvironment,
    verbosity: u8,
    format: LogFormat,
) -> Result<(), CliFailure> {
    let Some(directives) = choose_directives(verbosity, env.var("RUST_LOG")) else { return Ok(()) };
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        CliFailure::wrong_usage(format!("`RUST_LOG` is `{directives}`: {error}"))
            .hint("Write it as `info`, `debug` or `repertoire_agent=debug`.")
    })?;
    // `main` holds the lock of the stream, so write to it through a descriptor of our own.
    let stream = std::io::stderr().as_fd().try_clone_to_owned();
    let stream =
        stream.map_err(|error| CliFailure::cannot_run(format!("no standard streams: {error}")))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(Mutex::new(File::from(stream)));
    // This fails only if logging was started before, by another command of the same process.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}

/// Returns the filter of log lines; `None` for no logs. `RUST_LOG` wins, since it is more precise.
fn choose_directives(verbosity: u8, rust_log: Option<&str>) -> Option<String> {
    if let Some(directives) = rust_log.filter(|text| !text.trim().is_empty()) {
        return Some(directives.to_owned());
    }
    let level = match verbosity {
        0 => return None,
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    // All crates of the workspace have this prefix. Others, such as the HTTP client, may log secrets.
    Some(format!("repertoire={level}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_logged_unless_somebody_asks() {
        assert_eq!(choose_directives(0, None), None);
        assert_eq!(choose_directives(0, Some(" ")), None);
        assert_eq!(choose_directives(1, None).as_deref(), Some("repertoire=info"));
        assert_eq!(choose_directives(9, None).as_deref(), Some("repertoire=trace"));
        assert_eq!(choose_directives(1, Some("off")).as_deref(), Some("off"));
    }
}
