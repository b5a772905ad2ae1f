//! `ngame demo`.

use crate::command::ngame;

#[test]
fn the_demo_trains_measures_and_answers_and_its_model_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let sample = folder.path().join("sample");
    let text = ngame(["demo".as_ref(), "--out".as_ref(), sample.as_os_str()]).success();
    for part in [
        "The bundled sample",
        "1,180 labels",
        "nearest texts",
        "40.76",
        "fused",
        "gwenview",
        "✓",
        "Next",
        "ngame serve",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json = ngame(["check".as_ref(), sample.as_os_str(), "--json".as_ref()]).json();
    assert_eq!(json["n_labels"], 1180);
    let model = sample.join("model");
    let json =
        ngame(["inspect".as_ref(), model.as_os_str(), "--verify".as_ref(), "--json".as_ref()])
            .json();
    let fused = json["evaluation"]["fused"]["precision"][0].as_f64().unwrap();
    assert!(fused > 0.42, "better than the votes of the nearest texts: {fused}");
}
