//! `rep serve`: the page, the API and MCP over HTTP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use repertoire_serve::http::{self, Daemon, token::Keys};
use tokio_util::sync::CancellationToken;

use super::worker::stop_when_asked;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::ui::Ui;

/// Where to listen.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The port; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 7757)]
    port: u16,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Add what the MCP conformance suite looks for, and ask for no token on /mcp
    #[arg(long)]
    conformance: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let house = ctx.house().await?;
        let path = ctx.env.data_dir().join("serve").join("token");
        let (keys, _) =
            Keys::open(&path).map_err(|error| Failure::cannot_run(error.to_string()))?;
        let wanted = SocketAddr::new(args.host, args.port);
        let (listener, address) = http::bind(wanted).await.map_err(|error| {
            Failure::cannot_run(format!("{wanted} cannot be listened on: {error}"))
                .hint("`--port 0` takes any port that is free.")
        })?;
        let code = keys
            .lend_code(house.now_ms())
            .map_err(|error| Failure::cannot_run(error.to_string()))?;
        ui.note(&format!("http://{address}/#code={code}"))?;
        let shutdown = CancellationToken::new();
        stop_when_asked(shutdown.clone())?;
        let _watching = house.watch();
        let daemon = Daemon { house, keys: Arc::new(keys), address, conformance: args.conformance };
        http::serve(listener, daemon, shutdown)
            .await
            .map_err(|error| Failure::cannot_run(format!("the server stopped: {error}")))?;
        Ok(Exit::Done)
    })
}
