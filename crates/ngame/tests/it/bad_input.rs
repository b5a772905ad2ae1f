//! What a user gets wrong, and what they are told: file, line, expected, found, what to do.

use std::path::Path;

use ngame::data::{
    Dataset, ReadOptions, SplitRequest, read_filter, read_label_counts, read_predictions,
};
use ngame::error::Error;
use ngame::progress::{Event, Observer, Silent};

use crate::folders::{Folder, gzip};

const LABELS: &str = "{\"uid\": \"a\", \"title\": \"A\"}\n{\"uid\": \"b\", \"title\": \"B\"}\n";
const POINT: &str = "{\"uid\": \"p\", \"title\": \"P\", \"target_ind\": [0]}\n";

fn lf(train: impl AsRef<[u8]>) -> Folder {
    Folder::new().with("lbl.json", LABELS).with("trn.json", train)
}

#[track_caller]
fn check(folder: &Folder, expected: &str) {
    assert_eq!(folder.message(), expected.trim());
}

#[test]
fn missing_files() {
    let folder = Folder::new();
    let error =
        Dataset::read(&folder.file("no/such"), &ReadOptions::default(), &Silent).unwrap_err();
    let message = folder.strip(&error.to_string());
    assert!(message.starts_with("no/such: file not found\n"), "{message}");
    assert!(message.contains("no is missing too"), "{message}");
    assert!(message.contains("to do:    check the spelling of the path"), "{message}");
    check(
        &Folder::new().with("trn.json", POINT),
        "lbl.json.gz: file not found
  expected: a file of labels, one JSON object a line
  found:    trn.json
  to do:    an LF folder holds trn.json.gz and lbl.json.gz, and mostly tst.json.gz",
    );
    check(
        &Folder::new().with("trn_X.txt", "a\n"),
        "trn_X_Y.txt: file not found
  expected: a label matrix: a header `points labels`, then `label:1` pairs, one point a line
  found:    trn_X.txt
  to do:    put the label matrix beside the texts",
    );
}

#[test]
fn a_folder_nobody_knows() {
    let folder = Folder::new().with("readme.md", "").with("data.parquet", "");
    let message = folder.message();
    assert!(message.contains("unknown format"), "{message}");
    assert!(message.contains("found:    data.parquet, readme.md"), "{message}");
    let folder = Folder::new();
    assert!(folder.message().contains("found:    an empty folder"));
}

#[cfg(unix)]
#[test]
fn pipes_and_devices() {
    let read = |path: &str| Dataset::read(path.as_ref(), &ReadOptions::default(), &Silent);
    let message = read("/dev/null").unwrap_err().to_string();
    assert!(message.contains("found:    a pipe or device"), "{message}");
}

#[test]
fn empty_files() {
    for name in ["lbl.json", "trn.json"] {
        for empty in ["", "\n\n"] {
            check(
                &lf(POINT).with(name, empty),
                &format!(
                    "{name}: the file is empty
  expected: at least one row
  found:    nothing
  to do:    check that the file was written whole"
                ),
            );
        }
    }
    for name in ["train.csv", "train.tsv", "train.jsonl"] {
        let message = Folder::new().with(name, "").message();
        assert!(message.starts_with(&format!("{name}: the file is empty")), "{message}");
    }
    let message = Folder::new().with("train.csv", "text,labels\n").message();
    assert!(message.starts_with("train.csv: the file is empty"), "{message}");
    let folder = Folder::new().with("trn_X.txt", "a\n").with("trn_X_Y.txt", "");
    assert!(folder.message().starts_with("trn_X_Y.txt: the file is empty"));
}

#[test]
fn a_truncated_gzip() {
    let whole = gzip(POINT.repeat(1000));
    check(
        &lf(&whole[..whole.len() - 20]),
        "trn.json: the file is damaged
  expected: a whole gzip file
  found:    the data ends in the middle of the stream: the file is truncated
  to do:    copy or download the file again (`gzip -t` tells whether it is whole)",
    );
    let csv = gzip("text,labels\n".to_owned() + &"a,b\n".repeat(1000));
    let message = Folder::new().with("train.csv", &csv[..csv.len() - 20]).message();
    assert!(message.contains("the file is truncated"), "{message}");
}

#[test]
fn invalid_json() {
    check(
        &lf(format!("{POINT}{{\"title\": \"P\", \"target_ind\": [0}}\n")),
        "trn.json, line 2: not valid JSON
  expected: one JSON object a line
  found:    expected `,` or `]` at column 32
  to do:    mend or remove the line",
    );
    let message = Folder::new().with("train.json", "[\n{\"text\": \"a\"}\n]\n").message();
    assert!(message.contains("to do:    turn the list into lines: jq -c '.[]'"), "{message}");
}

#[test]
fn invalid_utf8() {
    check(
        &lf(b"{\"title\": \"a\", \"target_ind\": [0]}\n{\"title\": \"caf\xe9\"}\n"),
        "trn.json, line 2: not UTF-8 text
  expected: UTF-8 text
  found:    byte 0xe9 at byte 15 of the line
  to do:    convert the file, for example: iconv -f ISO-8859-1 -t UTF-8 FILE > NEW",
    );
    let message = Folder::new().with("train.csv", b"text,labels\na,x\ncaf\xe9,x\n").message();
    assert!(message.starts_with("train.csv, line 3: not UTF-8 text"), "{message}");
    let message = Folder::new().with("train.csv", b"\xff\xfet\0e\0").message();
    assert!(message.contains("found:    a UTF-16 byte-order mark"), "{message}");
}

#[test]
fn wrong_type_of_a_field() {
    check(
        &lf(format!("{POINT}{{\"title\": 5, \"target_ind\": [0]}}\n")),
        "trn.json, line 2, field `title`: wrong type of value
  expected: a string
  found:    integer `5`
  to do:    mend or remove the line",
    );
}

#[test]
fn label_indices() {
    check(
        &lf("{\"title\": \"P\", \"target_ind\": [-1]}\n"),
        "trn.json, line 1, field `target_ind`: label out of range
  expected: a label from 0 to 1 (there are 2)
  found:    -1
  to do:    labels are numbered from 0, in the order of the label file",
    );
    let message = lf(format!("{POINT}{{\"title\": \"P\", \"target_ind\": [2]}}\n")).message();
    assert!(message.starts_with("trn.json, line 2, field `target_ind`: label out of range"));
    assert!(message.contains("found:    2\n"), "{message}");
    check(
        &lf("{\"title\": \"P\", \"target_ind\": [\"a\"]}\n"),
        "trn.json, line 1, field `target_ind`: wrong type of value
  expected: a list of label indices (whole numbers)
  found:    string \"a\"
  to do:    mend or remove the line",
    );
    for (row, found) in [("-1:1", "-1"), ("2:1", "2"), ("99999999999:1", "99999999999")] {
        let folder =
            Folder::new().with("trn_X.txt", "a\n").with("trn_X_Y.txt", format!("1 2\n{row}\n"));
        let message = folder.message();
        assert!(message.starts_with("trn_X_Y.txt, line 2: label out of range"), "{message}");
        assert!(message.contains(&format!("found:    {found}\n")), "{message}");
    }
    for row in ["x:1", "1", "1:y", ":", "1:1:1"] {
        let folder =
            Folder::new().with("trn_X.txt", "a\n").with("trn_X_Y.txt", format!("1 2\n{row}\n"));
        check(
            &folder,
            &format!(
                "trn_X_Y.txt, line 2: wrong type of value
  expected: pairs `label:value`, a whole number and a number
  found:    `{row}`
  to do:    mend the line"
            ),
        );
    }
}

#[test]
fn counts_that_disagree() {
    let xc = |matrix: &str| Folder::new().with("trn_X.txt", "a\nb\n").with("trn_X_Y.txt", matrix);
    check(
        &xc("3 2\n0:1\n1:1\n"),
        "trn_X_Y.txt: counts disagree
  expected: 3 rows after the header, as it says
  found:    2
  to do:    use files that were written together",
    );
    assert!(xc("1 2\n0:1\n1:1\n").message().contains("found:    more than that"));
    let message = xc("3 2\n0:1\n1:1\n\n").message();
    assert!(message.contains("expected: 2 rows, one for each line of trn_X.txt"), "{message}");
    assert!(message.contains("found:    3 rows"), "{message}");
    let message = xc("2 2\n0:1\n1:1\n").with("Y.txt", "only one\n").message();
    assert!(message.starts_with("Y.txt: counts disagree"), "{message}");
    let folder = xc("2 2\n0:1\n1:1\n").with("tst_X.txt", "c\n").with("tst_X_Y.txt", "1 3\n2:1\n");
    assert!(folder.message().contains("expected: 2 labels, as in trn_X_Y"));
    assert!(xc("2 2\n0:1\n1:1\n\n\n").read().is_ok(), "blank lines at the end are no rows");
    check(
        &lf("{\"title\": \"P\", \"target_ind\": [0, 1], \"target_rel\": [1.0]}\n"),
        "trn.json, line 1, field `target_rel`: counts disagree
  expected: 2 numbers, one for each of `target_ind`
  found:    1 numbers
  to do:    use files that were written together",
    );
    check(
        &Folder::new().with("train.csv", "text,labels\na,x\nb,y,z\n"),
        "train.csv, line 3: counts disagree
  expected: 2 columns, as in the header
  found:    3 columns
  to do:    put a cell that holds a comma or a quote into \"quotes\"",
    );
}

#[test]
fn lines_of_tables_are_counted_right() {
    for (csv, line) in [
        ("text,labels\na,x\n\n\nb,y,z\n", 5),
        ("text,labels\r\na,x\r\n\r\nb,y,z", 4),
        ("\n\ntext,labels\n\"a\nb\",x\nb,y,z\n", 6),
        ("text,labels\n\"a\r\nb\",x\r\nb,y,z\r\n", 4),
        ("text,labels\nc,\"x\n\ny\",z\n", 2),
    ] {
        let message = Folder::new().with("train.csv", csv).message();
        assert!(
            message.starts_with(&format!("train.csv, line {line}: counts")),
            "{csv}: {message}"
        );
    }
    // A line break at the end of a buffer of the csv crate is a line break all the same.
    for n in 8180..8200 {
        let csv = format!("text,labels\r\n{},x\r\nb,y,z\r\n", "a".repeat(n));
        let message = Folder::new().with("train.csv", csv).message();
        assert!(message.starts_with("train.csv, line 3: counts"), "{n}: {message}");
    }
}

#[test]
fn a_table_of_semicolons_is_recognised() {
    let message = Folder::new().with("train.csv", "text;labels\na;x\n").message();
    assert!(message.contains("found:    `text;labels`"), "{message}");
    assert!(message.contains("to do:    separate columns by commas"), "{message}");
}

#[test]
fn headers_that_are_none() {
    let xc = |matrix: &str| Folder::new().with("trn_X.txt", "a\n").with("trn_X_Y.txt", matrix);
    let message = xc("0:1\n").message();
    assert!(message.contains("expected: a header of two numbers: rows columns"), "{message}");
    let message = xc("1 2 3\n0:1\n").message();
    assert!(message.contains("bag-of-words"), "{message}");
    let message = xc("1 99999999999\n0:1\n").message();
    assert!(message.contains("too large"), "{message}");
}

#[test]
fn filter_pairs_out_of_range() {
    check(
        &lf(POINT).with("filter_labels_train.txt", "0 1\n1 0\n"),
        "filter_labels_train.txt, line 2: filter pair out of range
  expected: a point below 1
  found:    point 1
  to do:    use the filter file that belongs to this split of the data set",
    );
    let message = lf(POINT).with("filter_labels_train.txt", "0 2\n").message();
    assert!(message.contains("expected: a label below 2"), "{message}");
    let message = lf(POINT).with("filter_labels_train.txt", "0 -1\n").message();
    assert!(message.contains("found:    label -1"), "{message}");
    for line in ["0", "0 1 2", "a b", "0:1"] {
        let message = lf(POINT).with("filter_labels_train.txt", line).message();
        assert!(message.contains("expected: two whole numbers: point label"), "{message}");
    }
}

#[test]
fn duplicate_label_ids() {
    check(
        &lf(POINT).with("lbl.json", format!("{LABELS}{{\"uid\": \"a\", \"title\": \"C\"}}\n")),
        "lbl.json, line 3: duplicate label id
  expected: an id that no other label has
  found:    `a`, which is label 0 already (counted from 0)
  to do:    remove the second label, or give it another id",
    );
    let own = |labels: &str| {
        Folder::new().with("train.csv", "text,labels\nt,a\n").with("labels.csv", labels)
    };
    let message = own("id,text\na,A\nb,B\na,C\n").message();
    assert!(message.starts_with("labels.csv, line 4: duplicate label id"), "{message}");
    let message = own("text\na\nb\na\n").message();
    assert!(message.contains("two labels with the text `a` and no ids"), "{message}");
}

#[test]
fn no_labels_at_all() {
    check(
        &lf("{\"title\": \"P\"}\n{\"title\": \"Q\", \"target_ind\": []}\n"),
        "FOLDER: no labels at all
  expected: training rows with labels
  found:    2 rows without any
  to do:    check the names of the fields: `labels`, or `target_ind` in an LF folder",
    );
    check(
        &Folder::new().with("train.csv", "text,tags\na,x\n"),
        "train.csv, line 1: missing field
  expected: a column `labels`
  found:    `text, tags`
  to do:    name the columns on the first line, such as: text,labels",
    );
}

#[test]
fn no_text_at_all() {
    check(
        &lf("{\"titel\": \"P\", \"target_ind\": [0]}\n"),
        "FOLDER: no text at all
  expected: training rows with a `text`, or a `title` and a `content`
  found:    1 rows without any
  to do:    check the names of the fields",
    );
    let message = Folder::new().with("train.csv", "body,labels\na,x\n").message();
    assert!(message.contains("expected: a column `text`, or `title` and `content`"), "{message}");
}

#[test]
fn labels_that_no_label_file_lists() {
    let folder = |labels: &str| {
        Folder::new().with("train.csv", "text,labels\na,x\nb,q\n").with("labels.csv", labels)
    };
    check(
        &folder("id,text\nx,X\n"),
        "train.csv, line 3, field `labels`: unknown label
  expected: the id or text of a label in labels.csv
  found:    `q`, which is neither
  to do:    add the label to the label file, correct it, or separate labels by `;`",
    );
    let message = folder("id,text\nx,X\n1,q\n2,q\n").message();
    assert!(message.contains("a text that several labels share: use the id"), "{message}");
}

#[test]
fn a_quote_that_is_never_closed() {
    check(
        &Folder::new().with("train.csv", "labels,text\nx,a\nx,\"b\nx,c\nx,d\n"),
        "train.csv, line 3: wrong type of value
  expected: every quoted cell to be closed by a quote
  found:    a row that begins here and runs to the end of the file
  to do:    close the quote, or write a quote inside a quoted cell twice",
    );
}

#[test]
fn splits_that_cannot_be_made() {
    for share in [0.0, 1.0, -0.5, f64::NAN] {
        let error = SplitRequest::new(share, 0).unwrap_err();
        assert!(matches!(error, Error::Option { option: "--split", .. }), "{error}");
    }
    let split = Some(SplitRequest::new(0.5, 0).unwrap());
    let options = ReadOptions { split, ..ReadOptions::default() };
    let error = lf(POINT).read_with(&options).unwrap_err().to_string();
    assert!(error.contains("found:    one row"), "{error}");
    let error = lf(POINT.repeat(3)).with("tst.json", POINT).read_with(&options).unwrap_err();
    assert!(error.to_string().contains("a data set that has its own test rows"), "{error}");
}

#[test]
fn predictions_and_counts() {
    let folder = Folder::new()
        .with("p.txt", "1 2\n0:0.5\n")
        .with("p.jsonl", "[\"x\"]\n")
        .with("q.jsonl", "{\"label\": 1}\n")
        .with("r.jsonl", "{\"labels\"\n")
        .with("counts.txt", "5 2\n1\n")
        .with("words.txt", "5 2\none\n1\n");
    let message = |name: &str| {
        let error = read_predictions(&folder.file(name), 2, 2, None, &Silent).unwrap_err();
        folder.strip(&error.to_string())
    };
    assert!(message("p.txt").contains("expected: 2 points and 2 labels, as in the truth"));
    assert!(message("p.jsonl").contains("field `labels`: unknown label"), "{}", message("p.jsonl"));
    assert!(message("q.jsonl").contains("found:    no `labels`"), "{}", message("q.jsonl"));
    assert!(message("r.jsonl").contains("r.jsonl, line 1: not valid JSON"));
    let counts = |name: &str| {
        folder.strip(&read_label_counts(&folder.file(name), &Silent).unwrap_err().to_string())
    };
    assert!(counts("counts.txt").contains("found:    1 counts"), "{}", counts("counts.txt"));
    assert!(counts("words.txt").starts_with("words.txt, line 2: wrong type of value"));
    let error = read_filter(&folder.file("none.txt"), 1, 1, &Silent).unwrap_err();
    assert!(error.to_string().contains("none.txt: file not found"));
}

#[test]
fn npz_files_that_are_none() {
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/npz"));
    let error = read_predictions(&fixtures.join("csc.npz"), 3, 5, None, &Silent).unwrap_err();
    assert!(error.to_string().contains("matrix.tocsr()"), "{error}");
    let bytes = std::fs::read(fixtures.join("f32.npz")).unwrap();
    for length in 0..bytes.len() {
        let folder = Folder::new().with("m.npz", &bytes[..length]);
        assert!(read_predictions(&folder.file("m.npz"), 3, 5, None, &Silent).is_err());
    }
    // Flipped bytes are caught, or harm nothing the matrix is made of; they never panic.
    for position in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[position] ^= 0x55;
        let folder = Folder::new().with("m.npz", &bytes);
        let _ = read_predictions(&folder.file("m.npz"), 3, 5, None, &Silent);
    }
}

#[test]
fn reading_stops_when_asked_to() {
    struct Impatient;
    impl Observer for Impatient {
        fn event(&self, _: Event<'_>) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let folder = lf(POINT);
    let error = Dataset::read(folder.path(), &ReadOptions::default(), &Impatient).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}
