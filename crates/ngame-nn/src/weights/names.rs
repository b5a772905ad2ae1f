//! The spellings of tensor names.

/// A naming scheme of tensors: that of a family of models in `transformers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `encoder.layer.0.attention.self.query.weight`, as layouts have it.
    Bert,
    /// `transformer.layer.0.attention.q_lin.weight`.
    DistilBert,
}

/// BERT's name of a layer's part, and DistilBERT's. Longer names stand before those they end with.
const PARTS: [(&str, &str); 8] = [
    ("attention.self.query", "attention.q_lin"),
    ("attention.self.key", "attention.k_lin"),
    ("attention.self.value", "attention.v_lin"),
    ("attention.output.dense", "attention.out_lin"),
    ("attention.output.LayerNorm", "sa_layer_norm"),
    ("intermediate.dense", "ffn.lin1"),
    ("output.dense", "ffn.lin2"),
    ("output.LayerNorm", "output_layer_norm"),
];

impl Family {
    /// How this family spells a name of a layout.
    pub fn spell(self, name: &str) -> String {
        let distil = || {
            let (layer, part) = name.strip_prefix("encoder.layer.")?.split_once('.')?;
            let (part, kind) = part.rsplit_once('.')?;
            let (_, part) = PARTS.iter().find(|(bert, _)| *bert == part)?;
            Some(format!("transformer.layer.{layer}.{part}.{kind}"))
        };
        match self {
            Self::Bert => name.to_owned(),
            // What lies outside the layers has the same name in both.
            Self::DistilBert => distil().unwrap_or_else(|| name.to_owned()),
        }
    }
}

/// The older spelling of a LayerNorm's tensor, which files converted from TensorFlow have.
pub(super) fn older_spelling(name: &str) -> Option<String> {
    let of = |new: &str, old: &str| Some(format!("{}{old}", name.strip_suffix(new)?));
    of("LayerNorm.weight", "LayerNorm.gamma").or_else(|| of("LayerNorm.bias", "LayerNorm.beta"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distilbert_spells_every_part_in_its_way() {
        for (bert, distil) in [
            ("embeddings.word_embeddings.weight", "embeddings.word_embeddings.weight"),
            ("embeddings.LayerNorm.bias", "embeddings.LayerNorm.bias"),
            ("encoder.layer.3.attention.self.key.bias", "transformer.layer.3.attention.k_lin.bias"),
            (
                "encoder.layer.10.attention.output.LayerNorm.weight",
                "transformer.layer.10.sa_layer_norm.weight",
            ),
            ("encoder.layer.0.output.dense.weight", "transformer.layer.0.ffn.lin2.weight"),
            (
                "encoder.layer.0.output.LayerNorm.weight",
                "transformer.layer.0.output_layer_norm.weight",
            ),
        ] {
            assert_eq!(Family::DistilBert.spell(bert), distil);
            assert_eq!(Family::Bert.spell(bert), bert);
        }
    }

    #[test]
    fn only_layer_norms_have_an_older_spelling() {
        let older = older_spelling("encoder.layer.0.output.LayerNorm.weight");
        assert_eq!(older.as_deref(), Some("encoder.layer.0.output.LayerNorm.gamma"));
        let older = older_spelling("embeddings.LayerNorm.bias");
        assert_eq!(older.as_deref(), Some("embeddings.LayerNorm.beta"));
        assert_eq!(older_spelling("encoder.layer.0.output.dense.weight"), None);
    }
}
