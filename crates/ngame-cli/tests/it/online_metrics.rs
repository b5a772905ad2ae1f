//! `ngame online-metrics`.

use crate::command::{ngame, temporary};

const LOG: &str = "arm,ads,clicks\ncontrol,2,1\ncontrol,0,0\nngame,3,1\nngame,1,1\n";

#[test]
fn arms_are_measured_and_compared() {
    let (_folder, path) = temporary("log.csv", LOG);
    let json = ngame(["online-metrics", path.to_str().unwrap(), "--json"]).json();
    assert_eq!(json["baseline"], "control");
    let arm = &json["arms"][1];
    assert_eq!(arm["name"], "ngame");
    assert_eq!(arm["metrics"]["impression_yield"]["value"], 2.0);
    assert_eq!(arm["metrics"]["query_coverage"]["value"], 1.0);
    assert_eq!(arm["lift_percent"]["click_yield"]["value"], 100.0);
    let text = ngame(["online-metrics", path.to_str().unwrap()]).success();
    assert!(text.contains("over control") && text.contains("+100.00 %"), "{text}");
}

#[test]
fn an_unknown_baseline_is_explained() {
    let (_folder, path) = temporary("log.csv", LOG);
    let args = ["online-metrics", path.to_str().unwrap(), "--baseline", "none"];
    let message = ngame(args).user_error();
    assert!(message.contains("one of the arms control, ngame"), "{message}");
}
