//! The layers, one a file: each a `forward` and a `backward` over a matrix with one row a token.

pub(crate) mod pooling;
