//! `ngame demo`.

use crate::command::ngame;

#[test]
fn the_demo_shows_data_baselines_and_answers() {
    let text = ngame(["demo"]).success();
    for part in
        ["The bundled sample", "1,180 labels", "nearest texts", "40.76", "gwenview", "✓", "Next"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn the_sample_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let sample = folder.path().join("sample");
    ngame(["demo".as_ref(), "--out".as_ref(), sample.as_os_str()]).success();
    let json = ngame(["check".as_ref(), sample.as_os_str(), "--json".as_ref()]).json();
    assert_eq!(json["n_labels"], 1180);
}
