//! Opens a link in the user's browser. The link contains a secret, and every user of the machine
//! can read command lines, so the browser gets the path of a private file that redirects to the
//! link.

use std::process::{Command, Stdio};

use camino::Utf8PathBuf;
use repertoire_text::fs;
use repertoire_text::html::{EscapedQuotes, escape_markup};

use crate::env::CliEnvironment;

/// Programs that open a file with the user's preferred browser.
const OPENERS: [&str; 4] = ["xdg-open", "open", "wslview", "x-www-browser"];

/// Opens a link. The error says why it was not possible.
pub(super) fn open_link(env: &CliEnvironment, link: &str) -> Result<(), String> {
    let chosen = env.var("BROWSER").and_then(|name| env.find_program(name));
    let opener = chosen.or_else(|| OPENERS.iter().find_map(|name| env.find_program(name)));
    let opener = opener.ok_or("there is none on PATH")?;
    let page = write_redirect_page(env, link).map_err(|error| error.to_string())?;
    let mut command = Command::new(&opener);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{opener}: {error}"))?;
    // Reap the child without waiting for it here: a browser may run for hours.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Writes a page that redirects to the link. The next call overwrites it; the code in it works once
/// and expires soon.
fn write_redirect_page(env: &CliEnvironment, link: &str) -> std::io::Result<Utf8PathBuf> {
    let path = env.data_dir().join("serve").join("open.html");
    let link = escape_markup(link, EscapedQuotes::Double);
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <meta http-equiv=refresh content=\"0; url={link}\"><title>Repertoire</title>\n"
    );
    fs::write_private(&path, text.as_bytes())?;
    Ok(path)
}
