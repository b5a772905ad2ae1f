//! The special tokens that frame every text, such as `[CLS] … [SEP]`.

use serde_json::Value;

use super::definition::unusable;
use crate::Result;
use crate::error::Place;

/// The ids that stand before and after the tokens of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SpecialTokens {
    /// The ids before the text, such as `[CLS]`.
    pub(super) before: Vec<u32>,
    /// The ids after the text, such as `[SEP]`.
    pub(super) after: Vec<u32>,
}

impl SpecialTokens {
    /// How many there are in every row.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Reads them off a tokenizer's post-processor.
    ///
    /// They are read rather than found by running the post-processor on a probe, because the crate
    /// panics when it runs a template that mentions a token it does not define.
    pub(super) fn of(tokenizer: &tokenizers::Tokenizer, place: &Place) -> Result<Self> {
        let place = place.clone().field("post_processor");
        let Some(processor) = tokenizer.get_post_processor() else { return Ok(Self::default()) };
        // The crate's own serialisation has one shape for each kind, however the file wrote it.
        let found = match serde_json::to_value(processor) {
            Ok(processor) => match read(&processor) {
                Some(special_tokens) => return Ok(special_tokens),
                None => processor.to_string(),
            },
            Err(error) => error.to_string(),
        };
        Err(unusable(place, found)
            .expected("special tokens before and after the text, all of them defined")
            .into())
    }
}

/// The special tokens of a serialised post-processor, if it does nothing but frame the text.
fn read(processor: &Value) -> Option<SpecialTokens> {
    match processor["type"].as_str()? {
        // This one only corrects offsets, which we do not use.
        "ByteLevel" => Some(SpecialTokens::default()),
        "BertProcessing" | "RobertaProcessing" => Some(SpecialTokens {
            before: vec![read_id(&processor["cls"][1])?],
            after: vec![read_id(&processor["sep"][1])?],
        }),
        "TemplateProcessing" => read_template(processor),
        // The crate cannot run a second framing step after a template, so at most one may frame.
        "Sequence" => {
            let mut framing = SpecialTokens::default();
            for part in processor["processors"].as_array()? {
                let part = read(part)?;
                if part.len() > 0 && framing.len() > 0 {
                    return None;
                }
                if part.len() > 0 {
                    framing = part;
                }
            }
            Some(framing)
        }
        _ => None,
    }
}

/// A template such as `[CLS] $A [SEP]`, with the text in it exactly once.
fn read_template(processor: &Value) -> Option<SpecialTokens> {
    let mut special_tokens = SpecialTokens::default();
    let mut n_texts = 0;
    for piece in processor["single"].as_array()? {
        if let Some(name) = piece["SpecialToken"]["id"].as_str() {
            let side =
                if n_texts == 0 { &mut special_tokens.before } else { &mut special_tokens.after };
            for id in processor["special_tokens"].get(name)?["ids"].as_array()? {
                side.push(read_id(id)?);
            }
        } else if piece["Sequence"]["id"] == "A" {
            n_texts += 1;
        } else {
            return None;
        }
    }
    (n_texts == 1).then_some(special_tokens)
}

/// A token id.
fn read_id(id: &Value) -> Option<u32> {
    id.as_u64().and_then(|id| u32::try_from(id).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(single: Value) -> Value {
        json!({
            "type": "TemplateProcessing",
            "single": single,
            "pair": [],
            "special_tokens": {
                "<s>": {"id": "<s>", "ids": [7, 8], "tokens": ["<", "s>"]},
                "</s>": {"id": "</s>", "ids": [9], "tokens": ["</s>"]}
            }
        })
    }

    fn special(name: &str) -> Value {
        json!({"SpecialToken": {"id": name, "type_id": 0}})
    }

    fn text(id: &str) -> Value {
        json!({"Sequence": {"id": id, "type_id": 0}})
    }

    #[test]
    fn templates_frame_the_text() {
        let framing = read(&template(json!([special("<s>"), text("A"), special("</s>")]))).unwrap();
        assert_eq!(framing, SpecialTokens { before: vec![7, 8], after: vec![9] });
        assert_eq!(framing.len(), 3);
        assert_eq!(read(&template(json!([text("A")]))).unwrap().len(), 0);
    }

    #[test]
    fn templates_that_the_crate_would_panic_on_are_refused() {
        for single in [
            json!([]),
            json!([special("<s>")]),
            json!([text("A"), text("A")]),
            json!([text("B")]),
            json!([special("undefined"), text("A")]),
        ] {
            assert_eq!(read(&template(single.clone())), None, "{single}");
        }
    }

    #[test]
    fn a_sequence_frames_at_most_once() {
        let framing = template(json!([special("<s>"), text("A")]));
        let bytes = json!({"type": "ByteLevel"});
        let sequence = |parts: Value| json!({"type": "Sequence", "processors": parts});
        assert_eq!(read(&sequence(json!([bytes, framing]))).unwrap().len(), 2);
        assert_eq!(read(&sequence(json!([framing, framing]))), None);
        assert_eq!(read(&sequence(json!([]))).unwrap().len(), 0);
    }
}
