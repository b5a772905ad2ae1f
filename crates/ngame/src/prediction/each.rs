//! Texts that came together and want different things: what a server packs into one call.

use rayon::prelude::*;

use super::predictor::{Predicted, PredictionOptions, Predictor};
use crate::Result;
use crate::data::{Csr, Texts};
use crate::progress::Observer;

impl Predictor {
    /// The labels of many texts, each as its own options ask, without the pairs `excluded`.
    ///
    /// # Panics
    /// If there are not as many options as texts.
    pub fn predict_each(
        &self,
        texts: &Texts,
        options: &[PredictionOptions],
        excluded: Option<&Csr>,
        observer: &dyn Observer,
    ) -> Result<Vec<Vec<Predicted>>> {
        assert_eq!(texts.len(), options.len(), "options for every text");
        let mut predictions = Vec::with_capacity(texts.len());
        self.for_each_window(texts, excluded, observer, &mut |_, candidates| {
            let begin = predictions.len();
            let wanted = candidates.par_iter().zip(&options[begin..]).enumerate();
            predictions.par_extend(
                wanted
                    .map(|(at, (found, &wanted))| self.rank(texts.get(begin + at), found, wanted)),
            );
            Ok(())
        })?;
        Ok(predictions)
    }
}
