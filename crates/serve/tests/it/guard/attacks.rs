//! Requests of browsers that were sent by somebody else, as they come over the wire.

/// What a browser does for somebody else's page, each with a token that is good wherever one could be had, so that only what the
/// line is about can be the reason to refuse it. `{at}` is the daemon's address.
pub(super) const ATTACKS: &[(&str, &str)] = &[
    // A name of the attacker's leads to this machine.
    (
        "rebinding",
        "GET /api/v1/skills HTTP/1.1\nHost: evil.com:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    ("rebinding of the page", "GET / HTTP/1.1\nHost: evil.com:{port}\n\n"),
    ("rebinding of the health", "GET /healthz HTTP/1.1\nHost: evil.com:{port}\n\n"),
    (
        "rebinding, and the page says so",
        "GET /api/v1/skills HTTP/1.1\nHost: evil.com:{port}\nOrigin: http://evil.com:{port}\nSec-Fetch-Site: same-origin\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "rebinding of /mcp",
        "POST /mcp HTTP/1.1\nHost: evil.com:{port}\nContent-Type: application/json\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "a name that begins like loopback",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.evil.com:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a name that begins with loopback",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.0.0.1.evil.com:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "localhost of somebody else",
        "GET /api/v1/skills HTTP/1.1\nHost: localhost.evil.com:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a public name for loopback",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.0.0.1.nip.io:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "localhost with a dot",
        "GET /api/v1/skills HTTP/1.1\nHost: localhost.:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "the address with a dot",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.0.0.1.:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "all addresses",
        "GET /api/v1/skills HTTP/1.1\nHost: 0.0.0.0:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "another loopback",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.0.0.2:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a short address",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.1:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a decimal address",
        "GET /api/v1/skills HTTP/1.1\nHost: 2130706433:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an octal address",
        "GET /api/v1/skills HTTP/1.1\nHost: 0177.0.0.1:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a hexadecimal address",
        "GET /api/v1/skills HTTP/1.1\nHost: 0x7f000001:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "the other loopback",
        "GET /api/v1/skills HTTP/1.1\nHost: [::1]:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "loopback in the other's clothes",
        "GET /api/v1/skills HTTP/1.1\nHost: [::ffff:127.0.0.1]:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a user in front",
        "GET /api/v1/skills HTTP/1.1\nHost: evil.com@{at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "the address as a user",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}@evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    ("no port", "GET /api/v1/skills HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {token}\n\n"),
    (
        "another port",
        "GET /api/v1/skills HTTP/1.1\nHost: 127.0.0.1:1\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "two hosts",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nHost: evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "two hosts in one",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}, evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    ("an empty host", "GET /api/v1/skills HTTP/1.1\nHost:\nAuthorization: Bearer {token}\n\n"),
    ("no host", "GET /api/v1/skills HTTP/1.1\nAuthorization: Bearer {token}\n\n"),
    ("no host in an old version", "GET /api/v1/skills HTTP/1.0\nAuthorization: Bearer {token}\n\n"),
    ("the page in an old version", "GET / HTTP/1.0\n\n"),
    (
        "a host that is forwarded",
        "GET /api/v1/skills HTTP/1.1\nHost: evil.com\nX-Forwarded-Host: {at}\nForwarded: host={at}\nAuthorization: Bearer {token}\n\n",
    ),
    // The first line says another address than the host.
    (
        "another address in the first line",
        "GET http://evil.com/api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "our address in the first line, another host",
        "GET http://{at}/api/v1/skills HTTP/1.1\nHost: evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "our other name in the first line",
        "GET http://localhost:{port}/api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a user in the first line",
        "GET http://x@{at}/api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "TLS in the first line",
        "GET https://{at}/api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    ("a proxy's request", "CONNECT {at} HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n"),
    ("a request to nothing", "OPTIONS * HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n"),
    // Another site asks.
    (
        "another origin",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an origin of nobody",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: null\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an empty origin",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin:\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an origin that begins like ours",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://{at}.evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an origin with us as its user",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://{at}@evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an origin with a path",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://{at}/\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "another program of this machine",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://127.0.0.1:3000\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "our other name as the origin",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://localhost:{port}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "the origin with TLS",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: https://{at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "two origins",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://{at}\nOrigin: http://evil.com\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an extension's origin",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: chrome-extension://abcdefgh\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "an origin of a file",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: file://\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a page that it comes from",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nReferer: http://evil.com/{at}/\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "events for another origin",
        "GET /api/v1/events HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nAccept: text/event-stream\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "events without a token",
        "GET /api/v1/events HTTP/1.1\nHost: {at}\nAccept: text/event-stream\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\n\n",
    ),
    (
        "a fetch to /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nContent-Type: application/json\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "a stream of /mcp",
        "GET /mcp HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nAccept: text/event-stream\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a picture",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a script",
        "GET /app.js HTTP/1.1\nHost: {at}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: script\n\n",
    ),
    (
        "a frame",
        "GET / HTTP/1.1\nHost: {at}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe\n\n",
    ),
    (
        "a tab with what only programs see",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a neighbour's page",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nSec-Fetch-Site: same-site\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "two answers to where from",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nSec-Fetch-Site: same-origin\nSec-Fetch-Site: cross-site\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a question before a fetch",
        "OPTIONS /api/v1/skills HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: authorization, content-type\n\n",
    ),
    (
        "a question for a private network",
        "OPTIONS /mcp HTTP/1.1\nHost: {at}\nOrigin: https://evil.com\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Private-Network: true\n\n",
    ),
    (
        "a question without an origin",
        "OPTIONS /api/v1/links HTTP/1.1\nHost: {at}\nAccess-Control-Request-Method: POST\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "just asking",
        "OPTIONS /api/v1/links HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    // A form of another site.
    (
        "a form",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: application/x-www-form-urlencoded\nAuthorization: Bearer {token}\nContent-Length: 3\n\na=b",
    ),
    (
        "a form of text",
        "POST /api/v1/session HTTP/1.1\nHost: {at}\nContent-Type: text/plain\nContent-Length: 13\n\n{\"code\":\"x=\"}",
    ),
    (
        "a form of parts",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: multipart/form-data; boundary=x\nAuthorization: Bearer {token}\nContent-Length: 5\n\n--x--",
    ),
    (
        "no type",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "no type and no body",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\nContent-Length: 0\n\n",
    ),
    (
        "a type that only looks like it",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: text/plain; application/json\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "two types",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Type: text/plain\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "text for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nContent-Type: text/plain\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "neither type nor body for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 0\n\n",
    ),
    (
        "no length either for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "text without a body for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nContent-Type: text/plain\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 0\n\n",
    ),
    (
        "JSON without a body for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nContent-Type: application/json\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 0\n\n",
    ),
    (
        "a form for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nContent-Type: application/x-www-form-urlencoded\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 3\n\na=b",
    ),
    (
        "a beacon",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nContent-Type: application/json\nSec-Fetch-Mode: no-cors\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "a body in a code",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Encoding: gzip\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "a body in chunks without a type",
        "DELETE /mcp HTTP/1.1\nHost: {at}\nTransfer-Encoding: chunked\nAuthorization: Bearer {token}\n\n0\n\n",
    ),
    (
        "a length and chunks",
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 5\nTransfer-Encoding: chunked\nAuthorization: Bearer bad\n\n0\n\n",
    ),
    (
        "a change by a GET",
        "GET /api/v1/links HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a change by a HEAD",
        "HEAD /api/v1/links HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    ("a session by a GET", "GET /api/v1/session?code=x HTTP/1.1\nHost: {at}\n\n"),
    (
        "another method in a header",
        "GET /api/v1/links HTTP/1.1\nHost: {at}\nX-HTTP-Method-Override: POST\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "another method for a form",
        "POST /api/v1/skills HTTP/1.1\nHost: {at}\nContent-Type: application/json\nX-Method-Override: GET\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "another method in the query",
        "GET /api/v1/links?_method=POST HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a method that nobody knows",
        "BREW /api/v1/skills HTTP/1.1\nHost: {at}\nContent-Type: application/json\nAuthorization: Bearer {token}\n\n",
    ),
    ("an echo", "TRACE /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n"),
    (
        "a form for the page",
        "POST / HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 2\n\n{}",
    ),
    // A socket.
    (
        "a WebSocket",
        "GET /api/v1/events HTTP/1.1\nHost: {at}\nOrigin: http://evil.com\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a WebSocket of our own",
        "GET /mcp HTTP/1.1\nHost: {at}\nUpgrade: WebSocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\nAuthorization: Bearer {token}\n\n",
    ),
    // No token, or not quite.
    ("no token", "GET /api/v1/skills HTTP/1.1\nHost: {at}\n\n"),
    (
        "no token for /mcp",
        "POST /mcp HTTP/1.1\nHost: {at}\nContent-Type: application/json\nAccept: application/json, text/event-stream\nContent-Length: 2\n\n{}",
    ),
    ("no token for the figures", "GET /metrics HTTP/1.1\nHost: {at}\n\n"),
    ("no token for the document", "GET /api/v1/openapi.json HTTP/1.1\nHost: {at}\n\n"),
    ("an empty token", "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer \n\n"),
    ("half a word", "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer\n\n"),
    ("a short token", "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer 0\n\n"),
    (
        "an old token",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n\n",
    ),
    (
        "more than a token",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}0\n\n",
    ),
    (
        "a list of tokens",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer 0, Bearer {token}\n\n",
    ),
    (
        "two tokens",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer 0\nAuthorization: Bearer {token}\n\n",
    ),
    ("a password", "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Basic {token}\n\n"),
    (
        "a token without a word",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: {token}\n\n",
    ),
    ("a token in the query", "GET /api/v1/skills?token={token} HTTP/1.1\nHost: {at}\n\n"),
    (
        "a token in the query, as some have it",
        "GET /api/v1/skills?access_token={token} HTTP/1.1\nHost: {at}\n\n",
    ),
    (
        "a token in a cookie",
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nCookie: token={token}; session={token}\n\n",
    ),
    (
        "a token as a code",
        "POST /api/v1/session HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 75\n\n{\"code\":\"{token}\"}",
    ),
    (
        "an empty code",
        "POST /api/v1/session HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 11\n\n{\"code\":\"\"}",
    ),
    // A path that goes somewhere else.
    ("a path that climbs", "GET /../../../../etc/passwd HTTP/1.1\nHost: {at}\n\n"),
    ("a path that climbs in a code", "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\nHost: {at}\n\n"),
    ("a path that climbs into the API", "GET /x/%2e%2e/api/v1/skills HTTP/1.1\nHost: {at}\n\n"),
    ("a path that climbs backwards", "GET /..%5c..%5cetc HTTP/1.1\nHost: {at}\n\n"),
    ("two slashes", "GET //api/v1/skills HTTP/1.1\nHost: {at}\n\n"),
    ("the API in a code", "GET /api%2fv1%2fskills HTTP/1.1\nHost: {at}\n\n"),
    ("the API in capitals", "GET /API/v1/skills HTTP/1.1\nHost: {at}\n\n"),
    ("the API with a slash", "GET /api/v1/skills/ HTTP/1.1\nHost: {at}\n\n"),
    (
        "/mcp with a slash",
        "POST /mcp/ HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 2\n\n{}",
    ),
    (
        "the session with a slash",
        "POST /api/v1/session/ HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 2\n\n{}",
    ),
    ("a path with nothing in it", "GET /%00 HTTP/1.1\nHost: {at}\n\n"),
    (
        "the files of the project",
        "GET /.claude/skills/quarterly-numbers/SKILL.md HTTP/1.1\nHost: {at}\n\n",
    ),
];
