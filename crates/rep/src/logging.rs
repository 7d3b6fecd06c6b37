//! Logs of what the program does, on standard error: off unless `--log` or `RUST_LOG` asks for them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Mutex;

use repertoire::telemetry::{SpanLayer, is_exported};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::env::CliEnvironment;
use crate::failure::CliFailure;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    /// One JSON object per line, for the programs that collect the logs of a daemon.
    Json,
}

/// Starts logging, if the user asked for it, and installs the layer of an export of spans, if there is one. Each span is
/// one line when it ends, with its duration.
///
/// # Errors
///
/// If `RUST_LOG` cannot be parsed, or standard error is closed.
pub(crate) fn start_logging(
    env: &CliEnvironment,
    verbosity: u8,
    format: LogFormat,
    export: Option<SpanLayer>,
) -> Result<(), CliFailure> {
    let directives = choose_directives(verbosity, env.var("RUST_LOG"));
    let log = directives.map(|directives| build_log_layer(&directives, format)).transpose()?;
    if log.is_none() && export.is_none() {
        return Ok(());
    }
    let export = export.map(|layer| layer.with_filter(filter_fn(is_exported)));
    // This fails only if logging was started before, by another command of the same process.
    let _ = tracing_subscriber::registry().with(log).with(export).try_init();
    Ok(())
}

fn build_log_layer(
    directives: &str,
    format: LogFormat,
) -> Result<Box<dyn Layer<Registry> + Send + Sync>, CliFailure> {
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        CliFailure::wrong_usage(format!("`RUST_LOG` is `{directives}`: {error}"))
            .hint("Write it as `info`, `debug` or `repertoire_agent=debug`.")
    })?;
    // `main` holds the lock of the stream, so write to it through a descriptor of our own.
    let stream = std::io::stderr().as_fd().try_clone_to_owned();
    let stream =
        stream.map_err(|error| CliFailure::cannot_run(format!("no standard streams: {error}")))?;
    let layer = tracing_subscriber::fmt::layer()
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(Mutex::new(File::from(stream)));
    Ok(match format {
        LogFormat::Text => layer.with_filter(filter).boxed(),
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    })
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
