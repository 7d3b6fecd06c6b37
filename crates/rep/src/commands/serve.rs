//! `rep serve`: serves the web page, the API and MCP over HTTP.

mod browser;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::Utf8PathBuf;
use repertoire_serve::ServeState;
use repertoire_serve::http::address_file::{self, AddressPublication, DaemonAddress};
use repertoire_serve::http::authority::HttpAuthority;
use repertoire_serve::http::token::{self, AccessKeys, TokenError};
use repertoire_serve::http::{self, ClientRules, HttpDaemon};
use repertoire_serve::limits::HttpLimits;
use repertoire_text::clock::{Clock as _, SystemClock};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::daemon::{DaemonArgs, cancel_on_signal, start_retention, work_until};
use crate::async_runtime::build_runtime_with_threads;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::serve::ServeJson;
use crate::ui::{self, TerminalUi};
use repertoire::plan_setup::journal_unavailable;

const PORT: u16 = 7757;
/// Number of worker threads. More than most machines have cores, since some requests wait for a
/// disk or a lock.
const SERVING_THREADS: usize = 16;

const AFTER_HELP: &str = "\
The token of the API is in the file `serve/token` of the data folder, which is ~/.local/share/repertoire
(XDG_DATA_HOME) or REPERTOIRE_DATA_DIR. Programs send it as `Authorization: Bearer TOKEN`; only you can
read it. Delete the file and start `rep serve` again to replace it. `rep --json serve` prints the path
of the file (`token_file`).";

/// Arguments of `rep serve`
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeAction>,
    /// The port to listen on; 0 takes any free port
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Allow an address that other machines can reach; needs `--allowed-host`
    #[arg(long)]
    allow_remote: bool,
    /// A host name that clients use for this server, with or without a port (may be repeated)
    #[arg(long = "allowed-host", value_name = "NAME")]
    allowed_hosts: Vec<HttpAuthority>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Also work on queued runs, as `rep daemon` does
    #[arg(long)]
    work: bool,
}

#[derive(Debug, clap::Subcommand)]
enum ServeAction {
    /// Print a new link to the page of the running daemon
    Link(LinkArgs),
}

/// Arguments of `rep serve link`
#[derive(Debug, clap::Args)]
struct LinkArgs {
    /// The port of the daemon, if there are several
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &ServeArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if let Some(ServeAction::Link(args)) = &args.command {
        return print_new_link(ctx, args, ui);
    }
    check_remote_access(args)?;
    build_runtime_with_threads(SERVING_THREADS)?.block_on(serve_http(ctx, args, ui))
}

async fn serve_http(ctx: &CliContext<'_>, args: &ServeArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let limits = http_limits(ctx);
    if let Err(few) = http::raise_file_limit(&limits) {
        let few = format!(
            "the system allows {} open files, and the connection limits need {}: raise it with `ulimit -n {}`, or lower \
             `serve.connections_max`",
            few.allowed, few.wanted, few.wanted
        );
        ui.print_note(&ui.paint_err(ui::WARN, few))?;
    }
    let serve_state = ctx.all_services()?;
    // Open the journal now: an error is easier to fix here than on the page.
    let target = ctx.journal_target(None);
    let journal =
        serve_state.journal().await.map_err(|error| journal_unavailable(&target, &error))?;
    let (listener, address) = bind_listener(ctx, args).await?;
    let (keys, _) = AccessKeys::open_token_file(&token_file(ctx)).map_err(no_token)?;
    for note in keys.notes() {
        ui.print_note(&ui.paint_err(ui::WARN, note))?;
    }
    // Install the signal handler before printing the link, since a caller may stop the daemon as
    // soon as it reads that.
    let shutdown = CancellationToken::new();
    cancel_on_signal(shutdown.clone())?;
    let code = keys.issue_code(serve_state.now_ms()).map_err(no_token)?;
    let _posted = post_address(ctx, address, ui)?;
    warn_of_remote_access(args, address, ui)?;
    print_link(ctx, reachable_address(address), &code, args.open, ui)?;

    let _watching = serve_state.watch();
    let _retention = start_retention(ctx, journal, &shutdown);
    let rules = ClientRules { names: args.allowed_hosts.clone(), limits };
    let daemon = HttpDaemon {
        serve_state: serve_state.clone(),
        keys: Arc::new(keys),
        address,
        extension: None,
        rules,
    };
    serve_and_work(ctx, args, listener, daemon, &serve_state, shutdown, ui).await
}

/// Returns the configurable limits of the server. A limit of 0 would lock everyone out, so it
/// becomes 1.
fn http_limits(ctx: &CliContext<'_>) -> HttpLimits {
    let values = ctx.config.values();
    HttpLimits {
        connections_max: values.serve_connections_max.max(1),
        unauthenticated_connections_max: values.serve_unauthenticated_connections_max.max(1),
        mcp_sessions_max: values.serve_mcp_sessions_max.max(1),
        ..HttpLimits::default()
    }
}

/// Serves, and also works on queued runs with `--work`. If one of the two ends, so does the other.
async fn serve_and_work(
    ctx: &CliContext<'_>,
    args: &ServeArgs,
    listener: TcpListener,
    daemon: HttpDaemon,
    serve_state: &ServeState,
    shutdown: CancellationToken,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let serving = async {
        let served = http::serve_http(listener, daemon, shutdown.clone()).await;
        shutdown.cancel();
        served.map_err(|error| CliFailure::cannot_run(format!("the server stopped: {error}")))
    };
    if !args.work {
        serving.await?;
        return Ok(CliExit::Done);
    }
    let working = async {
        // With `--json`, the output is one object about the server; the progress of runs is printed
        // as text.
        let is_json = std::mem::replace(&mut ui.json, false);
        let worked = match serve_state.journal().await {
            Ok(journal) => work_until(ctx, &DaemonArgs::default(), journal, &shutdown, ui).await,
            Err(error) => Err(journal_unavailable(&ctx.journal_target(None), &error).into()),
        };
        ui.json = is_json;
        shutdown.cancel();
        worked
    };
    let (served, worked) = tokio::join!(serving, working);
    served.and(worked)
}

/// Fails if other machines could reach the server without `--allow-remote` and `--allowed-host`.
fn check_remote_access(args: &ServeArgs) -> Result<(), CliFailure> {
    if args.host.is_loopback() {
        return if args.allow_remote {
            Err(CliFailure::wrong_usage(format!(
                "{} can only be reached from this machine",
                args.host
            ))
            .hint("Leave `--allow-remote` out, or name another address with `--host`."))
        } else {
            Ok(())
        };
    }
    if args.allow_remote && !args.allowed_hosts.is_empty() {
        return Ok(());
    }
    Err(CliFailure::wrong_usage(format!("other machines can reach {}, and this has no TLS", args.host))
        .hint("Reach this machine by `ssh -L 7757:127.0.0.1:7757 HOST`, and leave `--host` out.")
        .hint("Or say `--allow-remote --allowed-host NAME`, with the name that clients use, behind a proxy that has TLS."))
}

fn warn_of_remote_access(
    args: &ServeArgs,
    address: SocketAddr,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    if !args.allow_remote {
        return Ok(());
    }
    let names: Vec<String> = args.allowed_hosts.iter().map(ToString::to_string).collect();
    let text = format!(
        "other machines can reach {address} as {}. Whoever has the token can do here whatever you can, and without TLS it can be read on the way",
        names.join(", ")
    );
    ui.print_note(&ui.paint_err(ui::WARN, text))?;
    Ok(())
}

async fn bind_listener(
    ctx: &CliContext<'_>,
    args: &ServeArgs,
) -> Result<(TcpListener, SocketAddr), CliFailure> {
    let wanted = SocketAddr::new(args.host, args.port);
    http::bind_listener(wanted).await.map_err(|error| {
        if error.kind() != ErrorKind::AddrInUse {
            return CliFailure::cannot_run(format!("{wanted} cannot be listened on: {error}"));
        }
        match address_file::find_daemon(&address_file(ctx)) {
            Some(other) if other.address.port() == wanted.port() => {
                CliFailure::cannot_run(format!(
                    "a daemon is at {} already: process {}, for {}",
                    other.address, other.pid, other.project
                ))
                .hint("`rep serve link` prints a link to its page.")
            }
            _ => CliFailure::cannot_run(format!("another program listens on {wanted}")),
        }
        .hint("`--port 0` takes any port that is free.")
    })
}

/// Writes the address file, by which `rep serve link` finds this daemon. An earlier daemon keeps
/// its own.
fn post_address(
    ctx: &CliContext<'_>,
    address: SocketAddr,
    ui: &mut TerminalUi<'_>,
) -> Result<Option<address_file::AddressFile>, CliFailure> {
    let project = ctx.project_dir(None);
    let at =
        DaemonAddress { address: reachable_address(address), pid: std::process::id(), project };
    match address_file::publish_address(&address_file(ctx), &at) {
        Ok(AddressPublication::Done(posted)) => Ok(Some(posted)),
        Ok(AddressPublication::Taken(other)) => {
            ui.print_note(&format!(
                "another daemon is at {}, for {}; `rep serve link --port {}` prints links to this one",
                other.address,
                other.project,
                address.port()
            ))?;
            Ok(None)
        }
        Err(error) => {
            let path = address_file(ctx);
            ui.print_note(&ui.paint_err(
                ui::WARN,
                format!("`rep serve link` will not find this: {path}: {error}"),
            ))?;
            Ok(None)
        }
    }
}

fn print_new_link(ctx: &CliContext<'_>, args: &LinkArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let address = match args.port {
        Some(port) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
        None => match address_file::find_daemon(&address_file(ctx)) {
            Some(at) => at.address,
            None => {
                return Err(CliFailure::negative_answer("no daemon is running")
                    .hint("`rep serve` starts one."));
            }
        },
    };
    let code = token::store_code(&token_file(ctx), SystemClock.now_ms()).map_err(no_token)?;
    print_link(ctx, address, &code, args.open, ui)?;
    Ok(CliExit::Done)
}

/// Prints the link to stdout, since it may be read from a pipe.
fn print_link(
    ctx: &CliContext<'_>,
    address: SocketAddr,
    code: &str,
    open: bool,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let (link, token_file) = (format!("http://{address}/#code={code}"), token_file(ctx));
    if ui.json {
        let (address, token_file) = (address.to_string(), token_file.to_string());
        ui.print_json_line(&ServeJson { address, link: link.clone(), token_file })?;
    } else {
        ui.print_note("This link opens the page once, within ten minutes:")?;
        writeln!(ui.out, "{link}")?;
        ui.out.flush()?;
    }
    if open && let Err(why) = browser::open_link(ctx.env, &link) {
        ui.print_note(&ui.paint_err(ui::WARN, format!("no browser was opened: {why}")))?;
    }
    Ok(())
}

/// Replaces an unspecified address (all interfaces) by loopback, which can be typed into a browser.
fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn token_file(ctx: &CliContext<'_>) -> Utf8PathBuf {
    ctx.env.data_dir().join("serve").join("token")
}

fn address_file(ctx: &CliContext<'_>) -> Utf8PathBuf {
    ctx.env.data_dir().join("serve").join("address")
}

fn no_token(error: TokenError) -> CliFailure {
    let failure = CliFailure::cannot_run(error.to_string());
    match error {
        TokenError::Refused { .. } => failure.hint("Remove it, and a new one is made."),
        TokenError::Random(_) | TokenError::File { .. } => failure,
    }
}
