//! Logs of A/B tests, read back and measured.

use ngame::metrics::{Bootstrap, Search, SearchLog, evaluate_online};
use ngame::progress::Silent;

use crate::folders::Folder;

fn read(name: &str, bytes: &str) -> Result<SearchLog, String> {
    let folder = Folder::new().with(name, bytes);
    SearchLog::read(&folder.file(name), &Silent).map_err(|error| folder.strip(&error.to_string()))
}

#[test]
fn every_shape_says_the_same() {
    let search = |arm, ads, clicks| Search { arm, ads, clicks };
    let expected = SearchLog {
        arms: vec!["control".into(), "ngame".into()],
        searches: vec![search(0, 2, 1), search(1, 0, 0), search(1, 3, 2)],
    };
    for (name, text) in [
        ("log.csv", "arm,query,ads,clicks\ncontrol,shoes,2,1\nngame,cats,0,0\nngame,dogs,3,2\n"),
        ("log.tsv", "Arm\tads\tclicks\ncontrol\ta;b\ta\nngame\t\t\nngame\ta;b;c\ta;c\n"),
        (
            "log.jsonl",
            "{\"arm\": \"control\", \"ads\": [\"x\", \"y\"], \"clicks\": true}\n\
             {\"arm\": \"ngame\", \"ads\": [], \"clicks\": null}\n\n\
             {\"arm\": \"ngame\", \"ads\": 3, \"clicks\": 2}\n",
        ),
        (
            "events.csv",
            "arm,search,event\ncontrol,1,search\ncontrol,1,ad\ncontrol,1,ad\ncontrol,1,click\n\
             ngame,1,search\nngame,2,ad\nngame,2,ad\nngame,2,impression\nngame,2,click\n\
             ngame,2,click\n",
        ),
    ] {
        assert_eq!(read(name, text).unwrap(), expected, "{name}");
    }
}

#[test]
fn yields_are_those_of_the_paper() {
    let log = read("log.csv", "arm,ads,clicks\na,2,1\na,0,0\nb,3,2\nb,1,0\n").unwrap();
    let report = evaluate_online(&log, "a", &Bootstrap::default()).unwrap();
    let [a, b] = &report.arms[..] else { panic!("two arms") };
    assert_eq!(a.metrics.impression_yield.value, 1.0);
    assert_eq!(a.metrics.click_yield.value, 0.5);
    assert_eq!(a.metrics.query_coverage.value, 0.5);
    assert_eq!(b.metrics.query_coverage.value, 1.0);
    let lift = b.lift_percent.unwrap();
    assert_eq!(lift.impression_yield.unwrap().value, 100.0);
    assert_eq!(lift.click_yield.unwrap().value, 100.0);
}

#[test]
fn one_arm_needs_no_name() {
    let log = read("log.csv", "ads,clicks\n1,0\n").unwrap();
    assert_eq!(log.arms, ["all"]);
}

#[test]
fn bad_logs_are_explained() {
    for (name, text, expected) in [
        ("log.csv", "arm,ads\na,1\n", "log.csv, line 2, field `clicks`: missing field"),
        ("log.csv", "ads,clicks\n-1,0\n", "log.csv, line 2, field `ads`: wrong type of value"),
        ("log.csv", "ads,clicks\n1.5,0\n", "found:    `\"1.5\"`"),
        ("log.csv", "search,event\n1,view\n", "expected: search, ad or click"),
        ("log.csv", "event\nad\n", "field `search`: missing field"),
        ("log.jsonl", "{\"ads\": {}, \"clicks\": 1}\n", "expected: a number or a list"),
        ("log.jsonl", "{\"ads\": 1\n", "log.jsonl, line 1: not valid JSON"),
        ("log.csv", "ads,clicks\n", "log.csv: the file is empty"),
    ] {
        let message = read(name, text).unwrap_err();
        assert!(message.contains(expected), "{text}: {message}");
    }
}
