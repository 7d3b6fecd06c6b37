//! The web page: files embedded in the binary. They contain no secrets, and load nothing from
//! elsewhere.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};

#[derive(rust_embed::RustEmbed)]
#[folder = "src/page/"]
struct PageAssets;

/// The content security policy: the page may load its own parts and talk to this server, nothing
/// else, whatever a skill's text contains.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file at a path, if there is one; `/` is the page itself.
pub fn asset_response(path: &str) -> Option<Response<Body>> {
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let data = match name {
        INVISIBLE => invisible_characters().into_bytes().into(),
        name => PageAssets::get(name)?.data,
    };
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let mut response = Response::new(Body::from(data));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// The name of the script that is generated from the table of invisible characters.
const INVISIBLE: &str = "invisible.js";

/// Generates a script with the characters that the page displays by number.
fn invisible_characters() -> String {
    let ranges = repertoire_text::invisible::ranges_never_proper();
    let class: String =
        ranges.iter().map(|(first, last)| format!("\\u{{{first:x}}}-\\u{{{last:x}}}")).collect();
    format!("export const INVISIBLE = /[{class}]/gu;\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]
mod tests {
    use super::*;

    fn texts() -> impl Iterator<Item = (String, String)> {
        PageAssets::iter().map(|name| {
            let text =
                String::from_utf8(PageAssets::get(&name).unwrap().data.into_owned()).unwrap();
            (name.into_owned(), text)
        })
    }

    #[test]
    fn text_never_becomes_markup_or_code() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "createContextualFragment",
            "eval(",
            "new Function",
            "setTimeout(\"",
            "javascript:",
            " style=\"",
            " onclick=\"",
        ];
        for (name, text) in texts() {
            let found: Vec<&str> = ways.into_iter().filter(|way| text.contains(way)).collect();
            assert_eq!(found, Vec::<&str>::new(), "{name}");
        }
    }

    #[test]
    fn the_page_knows_the_table_of_invisible_characters() {
        let script = invisible_characters();
        assert!(script.starts_with("export const INVISIBLE = /[\\u{0}-\\u{8}"), "{script}");
        assert!(
            script.contains("\\u{e0001}-\\u{e007f}") && asset_response("/invisible.js").is_some()
        );
    }

    #[test]
    fn nothing_is_asked_of_anybody_else() {
        for (name, text) in texts() {
            let addresses = text
                .split("http")
                .filter(|rest| rest.starts_with("s://") || rest.starts_with("://"));
            let strangers: Vec<&str> = addresses
                .map(|rest| rest.split(['"', '\'', ' ']).next().unwrap_or_default())
                .filter(|rest| {
                    *rest != "://www.w3.org/2000/svg" && !rest.starts_with("://127.0.0.1:")
                })
                .collect();
            assert_eq!(strangers, Vec::<&str>::new(), "{name}");
        }
    }

    #[test]
    fn what_a_file_asks_for_is_there() {
        let mut asked = 0;
        for (name, text) in texts() {
            let imports = text.split(['"']).filter_map(|part| part.strip_prefix("./"));
            let links = text.split("=\"/").skip(1).filter_map(|rest| rest.split('"').next());
            for wanted in imports.chain(links).filter(|wanted| wanted.contains('.')) {
                assert!(asset_response(wanted).is_some(), "{name} asks for {wanted}");
                asked += 1;
            }
        }
        assert!(asked > 20, "{asked}");
    }

    #[test]
    fn every_file_has_its_kind_and_the_policy() {
        for name in PageAssets::iter() {
            let response = asset_response(&format!("/{name}")).unwrap();
            assert_ne!(
                response.headers()[header::CONTENT_TYPE],
                "application/octet-stream",
                "{name}"
            );
            assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], POLICY, "{name}");
        }
        assert!(asset_response("/../page.rs").is_none() && asset_response("/nothing").is_none());
    }
}
