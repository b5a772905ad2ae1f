//! What a model misses, and what the theorem allows: `ngame evaluate --errors` and `ngame theory`.

use std::path::Path;

use serde_json::Value;

use crate::command::{ngame, repository};
use crate::model::model;

#[test]
fn misses_and_the_guarantee_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let trained = model(folder.path());
    let data = repository("samples/debian-small").to_string_lossy().into_owned();
    let file = folder.path().join("misses.jsonl").to_string_lossy().into_owned();
    let json = ngame(["evaluate", &trained, &data, "--errors", &file, "--json"]).json();
    let errors = &json["errors"];
    let rows: Vec<Value> = std::fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |name: &str| errors[name].as_u64().unwrap();
    assert_eq!(rows.len() as u64, count("n_true") - count("n_right"));
    // Right ones are the hits that precision counts.
    let precision = json["fused"]["precision"][4].as_f64().unwrap();
    let n_points = json["n_points"].as_f64().unwrap();
    assert!((precision * 5.0 * n_points - count("n_right") as f64).abs() < 1e-6);
    let n_by_stage: u64 = errors["by_stage"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|counts| counts.as_array().unwrap())
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(n_by_stage, rows.len() as u64);
    let low = rows.iter().find(|row| row["stage"] == "in a shortlist but ranked low").unwrap();
    assert!(low["rank"].as_u64().unwrap() > 5 && low["views"]["classifier"]["rank"].is_u64());
    assert!(low["label"]["text"].is_string() && low["first"]["id"].is_string(), "{low}");
    for row in &rows {
        let seen = row["training_points"].as_u64().unwrap() > 0;
        assert_eq!(row["stage"] == "label never seen in training", !seen, "{row}");
        assert_eq!(row["band"] == "unseen", !seen, "{row}");
    }
    let text = ngame(["evaluate", &trained, &data, "--errors", &file]).success();
    for part in ["not in any shortlist", "unseen", "carried", "lexical"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let radii = ["--radius", "0.3,0.6,0.9"];
    let exact = ngame([&["theory", &trained, &data, "--json"][..], &radii].concat()).json();
    assert_eq!(exact["exact"], true);
    for at in exact["radii"].as_array().unwrap() {
        assert_eq!(at["holds"], true, "{at}");
        let share = |name: &str| at[name]["value"].as_f64().unwrap();
        assert!(share("missed") <= share("bound") && share("missed") <= share("hard"), "{at}");
    }
    // What `train --only encoder` leaves says the same.
    let alone = folder.path().join("alone");
    std::fs::create_dir_all(alone.join("encoder")).unwrap();
    let from = Path::new(&trained);
    std::fs::copy(from.join("plan.toml"), alone.join("plan.toml")).unwrap();
    for file in std::fs::read_dir(from.join("encoder")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), alone.join("encoder").join(file.file_name())).unwrap();
    }
    let alone = alone.to_string_lossy().into_owned();
    let again = ngame([&["theory", &alone, &data, "--json"][..], &radii].concat()).json();
    assert_eq!(again, exact);

    let figure = folder.path().join("bound.svg").to_string_lossy().into_owned();
    let more = ["--sample", "200", "--figure", &figure, "--cluster", "16"];
    let text = ngame([&["theory", &trained, &data][..], &radii, &more].concat()).success();
    assert!(text.contains("200 points against everything") && text.contains("c₂"), "{text}");
    let svg = std::fs::read_to_string(&figure).unwrap();
    assert!(
        svg.starts_with("<svg")
            && svg.ends_with("</svg>\n")
            && svg.matches("<polyline").count() == 6
    );
    let told = ngame(["theory", &trained, &data, "--radius", "3"]).user_error();
    assert!(told.contains("radius: expected a distance"), "{told}");
}
