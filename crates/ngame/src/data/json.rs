//! JSON straight into a [`Record`]: no tree of values, no allocation a field.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::record::{COLUMNS, Record, split_labels};
use super::texts::Texts;

/// Reads an object into a cleared record; on an error, `record.field` tells where it was.
pub(crate) fn read_object(text: &str, record: &mut Record) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    Any(RecordVisitor(record)).deserialize(&mut json)?;
    json.end()
}

/// Reads a list of labels.
pub(crate) fn read_labels(text: &str, names: &mut Texts) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    Any(LabelNames(names)).deserialize(&mut json)?;
    json.end()
}

/// Shows whatever value comes to a visitor.
struct Any<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Any<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        json.deserialize_any(self.0)
    }
}

struct RecordVisitor<'a>(&'a mut Record);

impl<'de> Visitor<'de> for RecordVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let record = self.0;
        while let Some(key) = map.next_key_seed(Any(Key))? {
            record.field = key;
            match key {
                "id" => {
                    let mut id = String::new();
                    map.next_value_seed(Any(Name(&mut id)))?;
                    record.id = Some(id);
                }
                "title" => map.next_value_seed(Any(Text(&mut record.title)))?,
                "content" => map.next_value_seed(Any(Text(&mut record.content)))?,
                "text" => map.next_value_seed(Any(Text(&mut record.text)))?,
                "labels" => map.next_value_seed(Any(LabelNames(&mut record.label_names)))?,
                "target_ind" => map.next_value_seed(Any(Numbers(&mut record.label_indices)))?,
                "target_rel" => map.next_value_seed(Any(Numbers(&mut record.relevances)))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        record.field = "";
        Ok(())
    }
}

/// The name of a field, in our spelling; "" for one that is not ours.
struct Key;

impl Visitor<'_> for Key {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<&'static str, E> {
        Ok(match name {
            "target_ind" => "target_ind",
            "target_rel" => "target_rel",
            _ => COLUMNS
                .iter()
                .find(|(_, spellings)| spellings.contains(&name))
                .map_or("", |&(column, _)| column),
        })
    }
}

/// A string or nothing. Of a field that stands there twice the last one counts.
struct Text<'a>(&'a mut String);

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.clear();
        Ok(())
    }
}

/// A string or a whole number: ids come as both.
struct Name<'a>(&'a mut String);

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a whole number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<(), E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<(), E> {
        self.visit_str(&number.to_string())
    }
}

/// Labels in the user's words: a list of strings or numbers, or a `;`-separated string.
struct LabelNames<'a>(&'a mut Texts);

impl<'de> Visitor<'de> for LabelNames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of labels")
    }

    fn visit_str<E: de::Error>(self, cell: &str) -> Result<(), E> {
        split_labels(cell, self.0);
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<(), E> {
        self.0.push(&number.to_string());
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<(), E> {
        self.0.push(&number.to_string());
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut name = String::new();
        while list.next_element_seed(Any(Name(&mut name)))?.is_some() {
            if !name.trim().is_empty() {
                self.0.push(name.trim());
            }
            name.clear();
        }
        Ok(())
    }
}

/// A list of numbers, or nothing.
struct Numbers<'a, T>(&'a mut Vec<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Numbers<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.clear();
        while let Some(number) = list.next_element()? {
            self.0.push(number);
        }
        Ok(())
    }
}
