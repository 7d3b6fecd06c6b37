//! A real browser, driven over the DevTools protocol: what it shows, what it asks for, and what it complains about.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const PROGRAMS: &[&str] =
    &["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Runs the browser until its own input ends, which it does with the test process, however that came. `$1` is the profile.
const KEEPER: &str = r#"
trap '' INT TERM HUP
profile=$1; shift
"$@" "--user-data-dir=$profile" about:blank &
read -r _
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
rm -rf "$profile" || { sleep 1; rm -rf "$profile"; }
"#;

/// The browser of all tests of this process: starting it takes longer than most of them.
struct SharedBrowser {
    /// Where it listens: `127.0.0.1:PORT/devtools/browser/ID`.
    address: String,
    _keeper: Child,
    _orders: ChildStdin,
}

/// A page of its own in the browser, which shares no storage with the pages of other tests.
pub(crate) struct Browser {
    socket: WebSocket<TcpStream>,
    session: String,
    next: u64,
    /// Every event so far.
    seen: Vec<Value>,
}

/// A key, as a keyboard has it.
pub(crate) struct Key<'a>(pub(crate) &'a str);

impl Browser {
    /// Opens a page. `None`, with a line that cannot be overlooked, where there is no browser; where `CI` is set there has
    /// to be one.
    pub(crate) fn start() -> Option<Browser> {
        static SHARED: OnceLock<Option<SharedBrowser>> = OnceLock::new();
        let address = &SHARED.get_or_init(SharedBrowser::start).as_ref()?.address;
        let stream =
            TcpStream::connect(&address[.."127.0.0.1:".len() + port_digits(address)]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://{address}"), stream).unwrap();
        let mut browser = Browser { socket, session: String::new(), next: 0, seen: Vec::new() };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        // It goes when the connection ends.
        let context = self.call("Target.createBrowserContext", json!({"disposeOnDetach": true}));
        let page = json!({"url": "about:blank", "browserContextId": context["browserContextId"]});
        let target = self.call("Target.createTarget", page);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach);
        self.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        // Pages of other tests are open at the same time.
        self.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        self.resize(1280, 800);
    }

    /// Sends a command, and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let mut heard: Value = serde_json::from_str(&text).unwrap();
            if heard["id"] == id {
                assert!(heard["error"].is_null(), "{method}: {}", heard["error"]);
                return heard["result"].take();
            }
            if heard["method"].is_string() {
                self.seen.push(heard);
            }
        }
    }

    /// Opens an address.
    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
    }

    /// What an expression is worth; promises are waited for.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true, and says what the page shows if it never is.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.eval(&format!("Boolean({expression})")) != true {
            let text = || "document.body?.innerText.slice(0, 3000)";
            assert!(Instant::now() < until, "never: {expression}\n{}", self.eval(text()));
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Waits until the page shows a text somewhere.
    #[track_caller]
    pub(crate) fn wait_text(&mut self, text: &str) {
        self.wait(&format!("document.body?.innerText.includes({})", json!(text)));
    }

    /// The text of the first element that a selector finds.
    #[track_caller]
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found =
            self.eval(&format!("document.querySelector({})?.innerText ?? null", json!(selector)));
        found.as_str().unwrap_or_else(|| panic!("there is no {selector}")).to_owned()
    }

    /// Clicks the middle of the first element that a selector finds, as a mouse does.
    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        self.wait(&format!("document.querySelector({})", json!(selector)));
        let measure = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        );
        // What is loaded later moves what stands below it, and a person clicks what has come to rest.
        let (mut place, until) = (self.eval(&measure), Instant::now() + PATIENCE);
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.eval(&measure);
            if now == place || Instant::now() > until {
                break;
            }
            place = now;
        }
        for kind in ["mousePressed", "mouseReleased"] {
            let (x, y) = (place[0].clone(), place[1].clone());
            let params = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Types a text into whatever has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.call(
                "Input.dispatchKeyEvent",
                json!({"type": "char", "text": letter.to_string()}),
            );
        }
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: Key<'_>) {
        let code = match key.0 {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            "ArrowDown" => 40,
            "ArrowUp" => 38,
            _ => 0,
        };
        let text = match key.0 {
            "Enter" => "\r",
            one if one.chars().count() == 1 => one,
            _ => "",
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let down = json!({"type": kind, "key": key.0, "text": text, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", down);
        let up = json!({"type": "keyUp", "key": key.0, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", up);
    }

    /// The size of the window.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let mobile = width < 600;
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// What the system says about `light` and `dark`.
    pub(crate) fn scheme(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// A picture of the window, as PNG in base 64.
    pub(crate) fn picture(&mut self) -> String {
        let params = json!({"format": "png", "optimizeForSpeed": false});
        self.call("Page.captureScreenshot", params)["data"].as_str().unwrap().to_owned()
    }

    fn events(&mut self, method: &str) -> Vec<Value> {
        // Whatever was under way has arrived once this is answered.
        self.eval("new Promise((done) => setTimeout(done, 50))");
        self.seen
            .iter()
            .filter(|one| one["method"] == method)
            .map(|one| one["params"].clone())
            .collect()
    }

    /// Every address that was asked for.
    pub(crate) fn requested(&mut self) -> Vec<String> {
        let sent = self.events("Network.requestWillBeSent");
        sent.iter().map(|one| one["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    /// Errors, warnings and exceptions that the browser has noted.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        let thrown = self.events("Runtime.exceptionThrown");
        let mut all: Vec<String> =
            thrown.iter().map(|one| one["exceptionDetails"].to_string()).collect();
        for one in self.events("Runtime.consoleAPICalled") {
            if one["type"] == "error" || one["type"] == "warning" {
                all.push(one["args"].to_string());
            }
        }
        for one in self.events("Log.entryAdded") {
            if one["entry"]["level"] == "error" || one["entry"]["level"] == "warning" {
                all.push(format!("{} {}", one["entry"]["text"], one["entry"]["url"]));
            }
        }
        all
    }
}

impl SharedBrowser {
    #[expect(clippy::disallowed_methods, reason = "whether this is CI is said by the environment")]
    fn start() -> Option<SharedBrowser> {
        let Some(program) = PROGRAMS.iter().find(|path| std::path::Path::new(path).exists()) else {
            assert!(
                std::env::var_os("CI").is_none(),
                "the page is tested in a browser; install chromium"
            );
            // Past the test harness, which would swallow it.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: there is no chromium, so the page is not tested"
            );
            return None;
        };
        let profile = tempfile::Builder::new().prefix("rep-browser-").tempdir().unwrap();
        let mut keeper = Command::new("sh");
        // From here on the keeper removes the profile.
        keeper.args(["-c", KEEPER, "keeper"]).arg(profile.keep()).arg(program);
        keeper.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        keeper.args(["--no-first-run", "--disable-background-networking", "--hide-scrollbars"]);
        keeper.args(["--force-prefers-no-reduced-motion", "--remote-debugging-port=0"]);
        // No page may be slower because another one is in front of it.
        keeper.args(["--disable-renderer-backgrounding", "--disable-background-timer-throttling"]);
        keeper.arg("--disable-backgrounding-occluded-windows");
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut keeper = keeper.spawn().unwrap();
        let orders = keeper.stdin.take().unwrap();
        let address = listening(keeper.stderr.take().unwrap());
        Some(SharedBrowser { address, _keeper: keeper, _orders: orders })
    }
}

/// `127.0.0.1:PORT/devtools/browser/ID`, as the browser says it when it listens.
fn listening(stderr: std::process::ChildStderr) -> String {
    let mut lines = BufReader::new(stderr).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("DevTools listening on ws://")?.1.trim().to_owned()))
        .expect("the browser ended before it listened");
    // Somebody has to read what it says from then on, or it stops when the pipe is full.
    std::thread::spawn(move || lines.for_each(drop));
    address
}

fn port_digits(address: &str) -> usize {
    let rest = &address["127.0.0.1:".len()..];
    rest.find('/').unwrap_or(rest.len())
}
