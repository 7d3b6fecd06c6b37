//! Opens a link in the user's browser. The link is a secret and arguments can be read by every user of a machine, so the
//! browser is given a file that leads there, which only its owner can read.

use std::process::{Command, Stdio};

use camino::Utf8PathBuf;
use repertoire_text::fs;

use crate::env::Env;

/// Programs that open what they are given with whatever the user likes best.
const OPENERS: [&str; 4] = ["xdg-open", "open", "wslview", "x-www-browser"];

/// Opens a link, or says why not.
pub(super) fn open(env: &Env, link: &str) -> Result<(), String> {
    let chosen = env.var("BROWSER").and_then(|name| env.program(name));
    let opener = chosen.or_else(|| OPENERS.iter().find_map(|name| env.program(name)));
    let opener = opener.ok_or("there is none on PATH")?;
    let page = leading_to(env, link).map_err(|error| error.to_string())?;
    let mut command = Command::new(&opener);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{opener}: {error}"))?;
    // Somebody has to hear that it ended; a browser may run for hours.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// A page that does nothing but lead to the link. It stays until the next one: what it holds is good once, and not for long.
fn leading_to(env: &Env, link: &str) -> std::io::Result<Utf8PathBuf> {
    let path = env.data_dir().join("serve").join("open.html");
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <meta http-equiv=refresh content=\"0; url={link}\"><title>Repertoire</title>\n"
    );
    fs::write_private(&path, text.as_bytes())?;
    Ok(path)
}
