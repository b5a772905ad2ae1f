//! The layers, one a file: each a `forward` and a `backward` over a matrix with one row a token.

pub(crate) mod attention;
pub(crate) mod blocks;
pub(crate) mod dropout;
pub(crate) mod embedding;
pub(crate) mod gelu;
pub(crate) mod layer_norm;
pub(crate) mod linear;
pub(crate) mod pooling;
