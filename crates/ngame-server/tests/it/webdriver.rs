//! As much of WebDriver as the page's tests need: a browser, told what to do over plain HTTP.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;

/// Keys as WebDriver spells them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const SHIFT: &str = "\u{e008}";

/// A browser with one window.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a browser.
    pub(crate) fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--log-level=SEVERE"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is there: scripts/get-chromium installs it");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self { driver, port: port.unwrap(), session: String::new() };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--window-size=1280,1000",
        ];
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let session = browser.command("POST", "/session", &capabilities);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut client = Client::new(([127, 0, 0, 1], self.port).into());
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost:{}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        client.write((head + &body).as_bytes()).unwrap();
        let reply = client.reply().unwrap();
        let answer: Value = serde_json::from_str(&reply.text).unwrap();
        assert_eq!(reply.status, 200, "{method} {path}: {answer}");
        answer["value"].clone()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.command("POST", &format!("/session/{}{path}", self.session), &body)
    }

    pub(crate) fn open(&self, url: &str) {
        self.post("/url", json!({ "url": url }));
    }

    /// What a piece of JavaScript gives.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({ "script": script, "args": [] }))
    }

    /// Waits until a piece of JavaScript gives something true.
    pub(crate) fn wait_for(&self, condition: &str) {
        for _ in 0..600 {
            if self.script(&format!("return !!({condition})")) == true {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let page = self.script("return document.body.innerText");
        panic!("never true: {condition}\n{}\n{:?}", page.as_str().unwrap_or(""), self.console());
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post("/element", json!({ "using": "css selector", "value": selector }));
        found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned()
    }

    pub(crate) fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/click"), json!({}));
    }

    /// Types into an element.
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/value"), json!({ "text": text }));
    }

    pub(crate) fn clear(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/clear"), json!({}));
    }

    /// Presses keys one after the other, wherever the focus is; Shift is held for the next.
    pub(crate) fn press(&self, keys: &[&str]) {
        let mut actions = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            actions.push(json!({ "type": "keyDown", "value": key }));
            if *key != SHIFT {
                actions.push(json!({ "type": "keyUp", "value": key }));
                if at > 0 && keys[at - 1] == SHIFT {
                    actions.push(json!({ "type": "keyUp", "value": SHIFT }));
                }
            }
        }
        self.post(
            "/actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        );
    }

    /// Tells the browser itself something.
    pub(crate) fn developer(&self, command: &str, parameters: Value) {
        self.post("/goog/cdp/execute", json!({ "cmd": command, "params": parameters }));
    }

    /// Everything in the console since it was last asked.
    pub(crate) fn console(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({ "type": "browser" }));
        log.as_array().unwrap().iter().map(Value::to_string).collect()
    }

    /// Saves what is seen.
    pub(crate) fn screenshot(&self, name: &str) {
        let path = format!("/session/{}/screenshot", self.session);
        let image = self.command("GET", &path, &Value::Null);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(folder).unwrap();
        let bytes = base64(image.as_str().unwrap());
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.command("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut n_bits) = (Vec::new(), 0u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push((bits >> n_bits) as u8);
        }
    }
    bytes
}
