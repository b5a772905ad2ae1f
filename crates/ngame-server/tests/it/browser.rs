//! The page in a real browser, which `make test` installs where it is missing.

use serde_json::json;

use crate::client::Running;
use crate::trained::{no_log, settings};
use crate::webdriver::{Browser, ENTER, SHIFT, TAB};

const LABELS: &str = "document.querySelectorAll('#labels details')";
const STATUS: &str = "document.getElementById('status').textContent";

/// A browser that shows the page of a server.
fn opened(settings: ngame_server::Settings) -> (Running, Browser) {
    let browser = Browser::start();
    let running = Running::start(settings, no_log());
    browser.open(&format!("http://{}/", running.address));
    (running, browser)
}

fn ready(browser: &Browser) {
    browser.wait_for("document.querySelectorAll('#examples button').length >= 3");
    browser.wait_for("document.querySelectorAll('#found li').length > 3");
    browser.wait_for("document.querySelector('.tiles')");
}

fn no_errors(browser: &Browser) {
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn people_ask_look_and_search() {
    let (running, browser) = opened(settings());
    ready(&browser);
    browser.screenshot("1-opened");

    // Labels come while one types.
    browser.write("#text", "photo viewer for the desktop");
    browser.wait_for(&format!("{LABELS}.length === 5 && {STATUS}.includes('ms')"));
    let scores = browser.script(
        "return [...document.querySelectorAll('#labels .score')].map((s) => parseFloat(s.textContent))",
    );
    let scores: Vec<f64> = serde_json::from_value(scores).unwrap();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[0] > 0.0, "{scores:?}");

    // Why a label.
    browser.click("#labels li:first-child summary");
    browser.wait_for("document.querySelectorAll('#labels li:first-child .views tr').length >= 3");
    let why = browser.script("return document.querySelector('#labels .why').innerText");
    let why = why.as_str().unwrap();
    assert!(why.contains("classifier") && why.contains("Training texts with it"), "{why}");
    browser.screenshot("2-why");

    // A label that is not wanted goes, and comes back.
    let first = "document.querySelector('#labels .name').textContent";
    let name = browser.script(&format!("return {first}"));
    browser.click("#labels li:first-child .foot button");
    browser.wait_for(&format!("{LABELS}.length === 5 && {first} !== {name}"));
    browser.click("#left-out button");
    browser.wait_for(&format!("{first} === {name}"));

    // Fewer labels, and only likely ones.
    browser.clear("#top");
    browser.write("#top", "2");
    browser.wait_for(&format!("{LABELS}.length === 2"));
    browser.script(
        "const t = document.getElementById('threshold'); t.value = '0.95'; \
         t.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    browser.wait_for("document.querySelector('#labels .none')");
    assert_eq!(
        browser.script("return document.getElementById('threshold-shown').textContent"),
        "95 %"
    );

    // Labels by their words.
    browser.write("#query", "view");
    browser.wait_for("document.getElementById('matches').textContent.includes('label')");
    let found = browser.script("return document.getElementById('found').innerText.toLowerCase()");
    assert!(found.as_str().unwrap().contains("view"), "{found}");

    // Another model, and an example of its own.
    browser.script(
        "const m = document.getElementById('model'); m.value = 'second'; \
         m.dispatchEvent(new Event('change', { bubbles: true }))",
    );
    browser.wait_for("document.title.startsWith('second')");
    ready(&browser);
    browser.script(
        "const t = document.getElementById('threshold'); t.value = '0'; \
         t.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    browser.click("#examples button:nth-child(2)");
    browser.wait_for(&format!("{LABELS}.length === 2"));

    // The card has its charts and tables.
    for part in [".tiles div", ".results tbody tr", ".filled", ".line-1", ".line-2"] {
        browser.wait_for(&format!("document.querySelector('#card {part}')"));
    }
    browser.script("document.getElementById('card').scrollIntoView({ behavior: 'instant' })");
    browser.screenshot("6-card");
    no_errors(&browser);
    running.stop();
}

#[test]
fn what_is_copied_works() {
    let (running, browser) = opened(settings());
    ready(&browser);
    browser.script(
        "window.copied = []; \
         navigator.clipboard.writeText = (text) => { window.copied.push(text); return Promise.resolve(); }",
    );
    browser.write("#text", "it's a mail client");
    browser.wait_for(&format!("{LABELS}.length === 5"));
    browser.click("#copy-json");
    browser.click("#copy-curl");
    browser.wait_for("window.copied.length === 2");
    let copied = browser.script("return window.copied");
    let json: serde_json::Value = serde_json::from_str(copied[0].as_str().unwrap()).unwrap();
    assert_eq!(json["predictions"][0]["labels"].as_array().unwrap().len(), 5);
    let line = copied[1].as_str().unwrap();
    let expected = format!("curl http://{}/v1/predict -H", running.address);
    assert!(line.starts_with(&expected) && line.contains(r"it'\''s a mail client"), "{line}");
    no_errors(&browser);
    running.stop();
}

#[test]
fn everything_can_be_done_with_the_keyboard() {
    let (running, browser) = opened(settings());
    ready(&browser);
    let focus =
        || browser.script("return document.activeElement.id || document.activeElement.tagName");
    browser.script("document.getElementById('text').focus()");
    let keys: Vec<String> = "mail client".chars().map(String::from).collect();
    browser.press(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    browser.press(&[ENTER]);
    browser.wait_for(&format!("{LABELS}.length === 5"));
    assert_eq!(browser.script("return document.getElementById('text').value"), "mail client");
    // A changed text is asked anew after a moment, and its labels take the place of those that are there.
    browser.script("document.querySelector('#labels li').id = 'before'");
    browser.press(&[SHIFT, ENTER]);
    assert_eq!(browser.script("return document.getElementById('text').value"), "mail client\n");
    browser.wait_for(&format!("!document.getElementById('before') && {LABELS}.length === 5"));
    // On by Tab: examples, options, then the first label, which opens with Enter.
    let mut passed = Vec::new();
    for _ in 0..30 {
        browser.press(&[TAB]);
        passed.push(focus().as_str().unwrap().to_owned());
        if passed.last().unwrap() == "SUMMARY" {
            break;
        }
    }
    assert!(passed.contains(&"top".to_owned()) && passed.contains(&"threshold".to_owned()));
    assert_eq!(passed.last().unwrap(), "SUMMARY", "{passed:?}");
    let outline = "return getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.script(outline), "solid", "where the focus is can be seen");
    browser.press(&[ENTER]);
    browser.wait_for("document.querySelectorAll('#labels li:first-child .views tr').length >= 3");
    for _ in 0..30 {
        browser.press(&[TAB]);
        if focus() == "query" {
            break;
        }
    }
    assert_eq!(focus(), "query");
    no_errors(&browser);
    running.stop();
}

#[test]
fn it_fits_a_phone_and_the_night() {
    let (running, browser) = opened(settings());
    browser.developer(
        "Emulation.setDeviceMetricsOverride",
        json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true }),
    );
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.developer("Emulation.setEmulatedMedia", dark);
    ready(&browser);
    browser.write("#text", "photo viewer");
    browser.wait_for(&format!("{LABELS}.length === 5"));
    browser.click("#labels li:first-child summary");
    browser.wait_for("document.querySelectorAll('#labels li:first-child .views tr').length >= 3");
    let fits = "document.documentElement.scrollWidth <= window.innerWidth";
    assert_eq!(browser.script(&format!("return {fits}")), true, "nothing is wider than the screen");
    let paper = || {
        let color = browser.script("return getComputedStyle(document.body).backgroundColor");
        let numbers = color.as_str().unwrap().to_owned();
        let numbers = numbers.trim_start_matches("rgb(").split(',').next().unwrap().to_owned();
        numbers.parse::<u32>().unwrap()
    };
    assert!(paper() < 60, "dark, as the system asks");
    browser.screenshot("3-phone-dark");
    browser.click("#theme");
    assert!(paper() > 200, "light, as the reader asks");
    assert_eq!(browser.script("return document.getElementById('theme').ariaPressed"), "false");
    browser.screenshot("4-phone-light");
    // What the reader chose stays.
    browser.open(&format!("http://{}/docs", running.address));
    browser.wait_for("document.querySelectorAll('#routes section').length >= 9");
    assert!(paper() > 200);
    assert_eq!(browser.script(&format!("return {fits}")), true);
    browser.screenshot("5-phone-docs");
    no_errors(&browser);
    running.stop();
}

#[test]
fn a_token_is_asked_for_once() {
    let mut settings = settings();
    settings.token = Some(ngame_server::Token::new("correct-horse-battery").unwrap());
    let (running, browser) = opened(settings);
    browser.wait_for("document.getElementById('token-dialog').open");
    browser.write("#token", "correct-horse-battery");
    browser.press(&[ENTER]);
    ready(&browser);
    browser.write("#text", "mail");
    browser.wait_for(&format!("{LABELS}.length === 5"));
    // The browser itself notes the answer without a token; nothing else may be in its console.
    assert!(browser.console().iter().all(|line| line.contains("401")));
    running.stop();
}
