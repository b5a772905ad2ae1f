//! Pooling: the tokens of a text become one vector.

/// How the tokens of a text become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all its tokens.
    #[default]
    Mean,
    /// Its first token, `[CLS]`.
    Cls,
}
