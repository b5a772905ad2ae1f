//! One page for people: `ngame report`.

use crate::command::{ngame, repository};
use crate::model::model;

#[test]
fn a_page_stands_by_itself_and_compares() {
    let folder = tempfile::tempdir().unwrap();
    let trained = model(folder.path());
    let data = repository("samples/debian-small").to_string_lossy().into_owned();
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();

    let one = file("one.html");
    let said = ngame(["report", &trained, "--data", &data, "--out", &one]).success();
    assert!(said.contains("one.html"), "{said}");
    let page = std::fs::read_to_string(&one).unwrap();
    for part in [
        "P@1",
        "Held-out points",
        "Where the time went",
        "decile",
        "Right at once",
        "Wrong at first",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("Side by side"));
    // Test metrics are those of the model, with intervals around them.
    let shown = ngame(["inspect", &trained, "--json"]).json();
    let precision = 100.0 * shown["evaluation"]["fused"]["precision"][0].as_f64().unwrap();
    assert!(page.contains(&format!("<td>{precision:.2}<small>")), "{precision}");
    // Nothing comes from elsewhere, and nothing runs.
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "//", "<script", "<link", "<img", "url(", "@import"] {
        assert!(!elsewhere.contains(part), "{part}");
    }
    let balanced = |tag: &str| {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        opened == page.matches(&format!("</{tag}>")).count() && opened > 0
    };
    assert!(["section", "svg", "table", "div", "article", "li", "span"].into_iter().all(balanced));

    // A run that has no model yet, beside one that has.
    let run = folder.path().join("later.run");
    std::fs::create_dir(&run).unwrap();
    for name in ["plan.toml", "metrics.jsonl"] {
        std::fs::copy(folder.path().join("model").join(name), run.join(name)).unwrap();
    }
    let both = file("both.html");
    ngame(["report", &trained, &run.to_string_lossy(), "--out", &both]).success();
    let page = std::fs::read_to_string(&both).unwrap();
    assert!(
        page.contains("Side by side") && page.contains(">later.run<") && page.contains("–</td>")
    );

    let told = ngame(["report", &file("nowhere"), "--out", &both]).user_error();
    assert!(told.contains("neither manifest.json nor plan.toml"), "{told}");
}
