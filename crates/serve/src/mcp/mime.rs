//! MIME types of files, by extension.

/// The type of a folder.
pub(super) const FOLDER: &str = "inode/directory";

/// The type of a file that is known to be text or binary.
pub(super) fn mime_type(path: &str, is_text: bool) -> &'static str {
    mime_by_extension(path).unwrap_or(if is_text {
        "text/plain"
    } else {
        "application/octet-stream"
    })
}

/// The type, if the extension determines it.
pub(super) fn mime_by_extension(path: &str) -> Option<&'static str> {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let kind = match ending.as_deref().unwrap_or_default() {
        "md" | "markdown" => "text/markdown",
        "txt" => "text/plain",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" => "text/x-typescript",
        "py" => "text/x-python",
        "rs" => "text/x-rust",
        "sh" | "bash" => "text/x-shellscript",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        _ => return None,
    };
    Some(kind)
}
