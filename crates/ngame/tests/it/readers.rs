//! Every format, read back.

use std::path::Path;

use ngame::data::{
    Csr, Dataset, Format, Ids, Oddities, ReadOptions, Split, SplitRequest, Summary, TextChoice,
    read_label_counts, read_predictions,
};
use ngame::progress::Silent;

use crate::folders::{Folder, gzip};

fn texts(split: &Split) -> Vec<&str> {
    split.texts.iter().collect()
}

fn rows(csr: &Csr) -> Vec<Vec<u32>> {
    csr.rows().map(<[u32]>::to_vec).collect()
}

fn label_texts(dataset: &Dataset) -> Vec<&str> {
    dataset.labels.texts.iter().collect()
}

fn read_file(folder: &Folder, name: &str) -> Dataset {
    Dataset::read(&folder.file(name), &ReadOptions::default(), &Silent).unwrap()
}

#[test]
fn the_bundled_sample_has_its_published_counts() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/debian-small"));
    let dataset = Dataset::read(path, &ReadOptions::default(), &Silent).unwrap();
    let stats: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.join("stats.json")).unwrap()).unwrap();
    let summary = serde_json::to_value(Summary::new(&dataset)).unwrap();
    for (ours, theirs) in [
        ("n_train", "n_train"),
        ("n_test", "n_test"),
        ("n_labels", "n_labels"),
        ("labels_per_point", "labels_per_point_train"),
        ("labels_per_point_test", "labels_per_point_test"),
        ("points_per_label", "points_per_label_train"),
        ("median_points_per_label", "median_points_per_label"),
        ("max_points_per_label", "max_points_per_label"),
        ("labels_with_1_train_point", "labels_with_1_train_point"),
        ("words_title_train", "words_title_train"),
        ("words_content_train", "words_content_train"),
        ("words_title_label", "words_title_label"),
        ("words_content_label", "words_content_label"),
    ] {
        assert_eq!(summary[ours].as_f64(), stats[theirs].as_f64(), "{ours}");
    }
    assert_eq!(summary["filter_pairs_test"], 49);
    assert!(dataset.test.as_ref().unwrap().filter.contains(5, 847));
    assert_eq!(dataset.labels.id(0), "libatk1.0-0");
}

fn lf_folder() -> Folder {
    Folder::new()
        .with(
            "lbl.json",
            "\u{feff}{\"uid\": \"a\", \"title\": \"Äpfel\", \"content\": \"rot\"}\r\n\
             {\"uid\": \"b\", \"title\": \"日本\", \"content\": \"\"}\r\n\
             {\"uid\": \"c\", \"title\": \"\"}\r\n",
        )
        .with(
            "trn.json.gz",
            gzip(
                "{\"uid\": \"p\", \"title\": \"t\", \"content\": \"c\", \
                  \"target_ind\": [1, 0, 1], \"target_rel\": [1.0, 1.0, 1.0]}\n\n\
                 {\"uid\": \"q\", \"title\": \"u\", \"target_ind\": [], \"target_rel\": []}\n\
                 {\"uid\": \"r\", \"title\": \"t\", \"content\": \"c\", \
                  \"target_ind\": [0, 1], \"target_rel\": [0.0, 0.5]}",
            ),
        )
        .with(
            "tst.json",
            "{\"uid\": \"a\", \"title\": \"t\", \"content\": \"c\", \"target_ind\": [2]}",
        )
        .with("trn_filter_labels.txt", "2 1\n")
        .with("filter_labels_test.txt", "0 2\n\n")
}

#[test]
fn lf_folders_are_read_with_their_filters() {
    let dataset = lf_folder().read().unwrap();
    assert_eq!(texts(&dataset.train), ["t c", "u", "t c"]);
    assert_eq!(rows(&dataset.train.by_point), [vec![0, 1], vec![], vec![1]]);
    assert_eq!(rows(&dataset.train.by_label), [vec![0], vec![0, 2], vec![]]);
    assert_eq!(rows(&dataset.train.filter), [vec![], vec![], vec![1]]);
    assert_eq!(label_texts(&dataset), ["Äpfel rot", "日本", ""]);
    assert_eq!(dataset.labels.id(2), "c");
    assert_eq!(dataset.train.id(1), "q");
    let test = dataset.test.as_ref().unwrap();
    assert_eq!(rows(&test.by_point), [[2]]);
    assert_eq!(rows(&test.filter), [[2]]);
}

#[test]
fn oddities_are_counted_one_by_one() {
    let dataset = lf_folder().read().unwrap();
    assert_eq!(
        Oddities::count(&dataset),
        Oddities {
            duplicate_points: 1,
            test_points_in_train: 1,
            empty_texts: 0,
            labels_without_text: 1,
            duplicate_label_texts: 0,
            labels_without_train_point: 1,
            train_points_without_labels: 1,
            test_points_without_labels: 0,
            repeated_labels_in_rows: 1,
            irrelevant_pairs: 1,
            true_pairs_in_filter: 1,
            unfiltered_self_labels: 1,
        }
    );
}

#[test]
fn the_text_is_chosen_for_points_and_labels() {
    let folder = lf_folder();
    for (text, first_point, first_label) in [
        (TextChoice::Title, "t", "Äpfel"),
        (TextChoice::Content, "c", "rot"),
        (TextChoice::Both, "t c", "Äpfel rot"),
    ] {
        let dataset = folder.read_with(&ReadOptions { text, ..ReadOptions::default() }).unwrap();
        assert_eq!(dataset.train.texts.get(0), first_point);
        assert_eq!(dataset.labels.texts.get(0), first_label);
        assert_eq!(dataset.train.texts.get(1), "u");
    }
}

#[test]
fn xc_text_folders_are_read() {
    let folder = Folder::new()
        .with("trn_X.txt", "first\n\nthird\n")
        .with("trn_X_Y.txt", "3 2\n1:1.0 0:1\n\n0:0 1:1\n")
        .with("tst_X.txt", zstd::encode_all(&b"fourth"[..], 1).unwrap())
        .with("tst_X_Y.txt.gz", gzip("1 2\n\n"))
        .with("Y.txt", "one\ntwo\n");
    let dataset = folder.read().unwrap();
    assert_eq!(texts(&dataset.train), ["first", "", "third"]);
    assert_eq!(rows(&dataset.train.by_point), [vec![0, 1], vec![], vec![1]]);
    assert_eq!(dataset.train.notes.irrelevant_pairs, 1);
    assert_eq!(label_texts(&dataset), ["one", "two"]);
    assert_eq!(dataset.labels.id(1), "1");
    assert_eq!(rows(&dataset.test.unwrap().by_point), [Vec::<u32>::new()]);
}

#[test]
fn xc_labels_may_have_no_text() {
    let folder = Folder::new().with("trn_X.txt", "a\n").with("trn_X_Y.txt", "1 3\n2:1\n");
    assert_eq!(label_texts(&folder.read().unwrap()), ["", "", ""]);
}

#[test]
fn a_csv_alone_is_a_data_set() {
    let folder = Folder::new().with(
        "mine.csv",
        "Text,Labels\n\"red, round\",apple; fruit\nlong,banana;fruit;fruit\n\"two\nlines\",\n",
    );
    let dataset = read_file(&folder, "mine.csv");
    assert_eq!(texts(&dataset.train), ["red, round", "long", "two\nlines"]);
    assert_eq!(label_texts(&dataset), ["apple", "fruit", "banana"]);
    assert_eq!(rows(&dataset.train.by_point), [vec![0, 1], vec![1, 2], vec![]]);
    assert_eq!(dataset.labels.id(2), "banana");
    assert_eq!(dataset.train.notes.repeated_labels, 1);
    assert!(dataset.test.is_none());
}

#[test]
fn jsonl_csv_and_tsv_say_the_same() {
    let csv = "id,title,content,labels\r\n1,a,\"b \"\"q\"\"\",x;y\r\n2,c,,y\r\n";
    let tsv = "id\ttitle\tcontent\tlabels\n1\ta\t\"b \"\"q\"\"\"\tx;y\n2\tc\t\ty\n";
    let jsonl = "{\"id\": 1, \"title\": \"a\", \"content\": \"b \\\"q\\\"\", \"labels\": [\"x\", \"y\"]}\n\
                 {\"id\": \"2\", \"text\": \"c\", \"labels\": \"y\"}\n";
    let folder = Folder::new()
        .with("d.csv", csv)
        .with("d.tsv", tsv)
        .with("d.jsonl", jsonl)
        .with("no-ending-csv", csv)
        .with("no-ending-tsv", gzip(tsv))
        .with("no-ending-jsonl", jsonl);
    for name in ["d.csv", "d.tsv", "d.jsonl", "no-ending-csv", "no-ending-tsv", "no-ending-jsonl"] {
        let dataset = read_file(&folder, name);
        assert_eq!(texts(&dataset.train), ["a b \"q\"", "c"], "{name}");
        assert_eq!(rows(&dataset.train.by_point), [vec![0, 1], vec![1]], "{name}");
        assert_eq!((dataset.train.id(0), dataset.train.id(1)), ("1".into(), "2".into()), "{name}");
    }
}

#[test]
fn own_labels_are_named_by_id_or_text() {
    let folder = Folder::new()
        .with("labels.csv", "id,text\nA1,apple\nB2,banana\nC3,cherry\nD4,\n")
        .with("train.jsonl", "{\"text\": \"t\", \"labels\": [\"A1\", \"banana\"]}\n")
        .with("test.tsv", "text\tlabels\nu\tB2;D4\n")
        .with("valid.csv", "text,labels\nv,cherry\n");
    let dataset = folder.read().unwrap();
    assert_eq!(rows(&dataset.train.by_point), [[0, 1]]);
    assert_eq!(rows(&dataset.test.as_ref().unwrap().by_point), [[1, 3]]);
    assert_eq!(rows(&dataset.valid.as_ref().unwrap().by_point), [[2]]);
    assert_eq!(label_texts(&dataset), ["apple", "banana", "cherry", ""]);
    assert_eq!(dataset.labels.id(3), "D4");
    assert_eq!(dataset.train.by_label.n_rows(), 4);
    assert_eq!(dataset.train.by_point.n_columns(), 4);
}

#[test]
fn labels_seen_only_in_test_are_labels_too() {
    let folder = Folder::new()
        .with("train.csv", "text,labels\na,x\n")
        .with("test.csv", "text,labels\nb,y\n");
    let dataset = folder.read().unwrap();
    assert_eq!(label_texts(&dataset), ["x", "y"]);
    assert_eq!(dataset.train.by_point.n_columns(), 2);
    assert_eq!(rows(&dataset.train.by_label), [vec![0], vec![]]);
    assert_eq!(rows(&dataset.test.unwrap().by_point), [[1]]);
}

#[test]
fn one_label_is_enough() {
    let folder = Folder::new().with("train.csv", "text,label\na,x\nb,x\n");
    let dataset = folder.read().unwrap();
    assert_eq!(dataset.n_labels(), 1);
    assert_eq!(Summary::new(&dataset).points_per_label, 2.0);
    assert_eq!(dataset.labels.ids, Ids::SameAsText);
}

#[test]
fn a_split_moves_each_point_once_and_the_same_way() {
    let mut csv = String::from("id,text,labels\n");
    for point in 0..100 {
        csv += &format!("{point},text {point},label {}\n", point % 7);
    }
    let folder = Folder::new().with("train.csv", csv).with("filter_labels_train.txt", "42 3\n");
    let read = |share, seed| {
        let split = Some(SplitRequest::new(share, seed).unwrap());
        folder.read_with(&ReadOptions { split, ..ReadOptions::default() }).unwrap()
    };
    let ids = |split: &Split| {
        (0..split.n_points()).map(|point| split.id(point).parse().unwrap()).collect::<Vec<u32>>()
    };
    let dataset = read(0.25, 1);
    let (train, test) = (ids(&dataset.train), ids(dataset.test.as_ref().unwrap()));
    assert_eq!((train.len(), test.len()), (75, 25));
    let mut all = [&train[..], &test[..]].concat();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    for split in [&dataset.train, dataset.test.as_ref().unwrap()] {
        for point in 0..split.n_points() {
            let id: u32 = split.id(point).parse().unwrap();
            assert_eq!(split.texts.get(point), format!("text {id}"));
            assert_eq!(split.by_point.row(point), [id % 7]);
            assert_eq!(split.filter.contains(point, 3), id == 42);
        }
    }
    assert_eq!(ids(&read(0.25, 1).train), train);
    assert_ne!(ids(&read(0.25, 2).train), train);
    assert_eq!(read(0.0001, 1).test.unwrap().n_points(), 1);
    assert_eq!(read(0.9999, 1).train.n_points(), 1);
}

#[test]
fn a_forced_format_wins_over_detection() {
    let folder = Folder::new()
        .with("trn_X.txt", "a\n")
        .with("trn_X_Y.txt", "1 3\n2:1\n")
        .with("train.csv", "text,labels\na,x\n");
    assert_eq!(folder.read().unwrap().n_labels(), 3);
    let options = ReadOptions { format: Some(Format::Own), ..ReadOptions::default() };
    assert_eq!(folder.read_with(&options).unwrap().n_labels(), 1);
}

#[test]
fn predictions_of_every_kind_are_the_same() {
    let folder = lf_folder()
        .with("p.txt", "2 3\n2:0.5 0:0.25\n\n")
        .with(
            "p.jsonl",
            "{\"labels\": [{\"id\": \"c\", \"score\": 0.5}, {\"id\": 0, \"score\": 0.25}]}\n[]\n",
        )
        .with("p2.jsonl", "[[\"c\", 0.5], [\"a\", 0.25], [\"a\", 0.1]]\n{\"labels\": []}\n")
        .with("ranked.jsonl", "[\"c\", \"a\"]\n[]\n");
    let labels = folder.read().unwrap().labels;
    let read =
        |name: &str| read_predictions(&folder.file(name), 2, 3, Some(&labels), &Silent).unwrap();
    let predictions = read("p.txt");
    assert_eq!(predictions.row(0), (&[0, 2][..], &[0.25, 0.5][..]));
    assert_eq!(predictions, read("p.jsonl"));
    assert_eq!(predictions, read("p2.jsonl"));
    assert_eq!(read("ranked.jsonl").row(0), (&[0, 2][..], &[-1.0, 0.0][..]));
}

#[test]
fn npz_matrices_of_scipy_are_read() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/npz"));
    for name in ["f32.npz", "f64-int64.npz", "bool.npz", "stored.npz"] {
        let matrix = read_predictions(&path.join(name), 3, 5, None, &Silent).unwrap();
        let expected = if name == "bool.npz" { [1.0, 1.0] } else { [0.5, 0.25] };
        assert_eq!(matrix.row(0), (&[1, 4][..], &expected[..]), "{name}");
        assert_eq!(matrix.row(1), (&[][..], &[][..]), "{name}");
        assert_eq!(matrix.row(2).0, [0], "{name}");
    }
}

#[test]
fn label_counts_come_from_a_list_or_a_matrix() {
    let folder =
        Folder::new().with("counts.txt", "9 3\n2\n0\n1\n").with("m.txt", "3 3\n\n0:1\n0:1 2:1\n");
    let read = |name: &str| read_label_counts(&folder.file(name), &Silent).unwrap();
    assert_eq!(read("counts.txt"), (9, vec![2, 0, 1]));
    assert_eq!(read("m.txt"), (3, vec![2, 0, 1]));
}
