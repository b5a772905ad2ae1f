//! The learning rate of every step: it rises in a straight line, then falls.

/// How the learning rate falls after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decay {
    /// It does not.
    Constant,
    /// In a straight line to zero at the end.
    #[default]
    Linear,
    /// Along half a wave of the cosine to zero at the end.
    Cosine,
}

/// The learning rate over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The rate at the end of the warm-up.
    pub peak: f32,
    /// The steps of the warm-up.
    pub n_warmup_steps: u64,
    /// The steps of the run, warm-up included.
    pub n_steps: u64,
    /// What happens after the warm-up.
    pub decay: Decay,
}

impl Schedule {
    /// The rate of a step, counted from 0. No step of the run has a rate of 0: the warm-up's first
    /// step has its share already, and zero would come one step after the last.
    pub fn rate(&self, step: u64) -> f32 {
        if step < self.n_warmup_steps {
            return self.peak * ((step + 1) as f64 / self.n_warmup_steps as f64) as f32;
        }
        let left = self.n_steps.saturating_sub(step) as f64;
        let share =
            (left / self.n_steps.saturating_sub(self.n_warmup_steps).max(1) as f64).min(1.0);
        let share = match self.decay {
            Decay::Constant => 1.0,
            Decay::Linear => share,
            Decay::Cosine => 0.5 * (1.0 - (std::f64::consts::PI * share).cos()),
        };
        self.peak * share as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(decay: Decay) -> Vec<f32> {
        let schedule = Schedule { peak: 1.0, n_warmup_steps: 4, n_steps: 12, decay };
        (0..14).map(|step| schedule.rate(step)).collect()
    }

    #[test]
    fn the_rate_rises_then_falls_to_zero_behind_the_last_step() {
        assert_eq!(
            rates(Decay::Linear),
            [0.25, 0.5, 0.75, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0, 0.0]
        );
        let cosine = rates(Decay::Cosine);
        assert_eq!((cosine[3], cosine[4], cosine[12]), (1.0, 1.0, 0.0));
        assert!((cosine[8] - 0.5).abs() < 1e-6 && cosine[5] > 0.95 && cosine[11] < 0.05);
        assert_eq!(rates(Decay::Constant)[4..], [1.0; 10]);
    }

    #[test]
    fn runs_without_warm_up_or_without_steps_have_rates() {
        let schedule = Schedule { peak: 2.0, n_warmup_steps: 0, n_steps: 1, decay: Decay::Linear };
        assert_eq!(schedule.rate(0), 2.0);
        assert!(Schedule { n_steps: 0, ..schedule }.rate(0).is_finite());
    }
}
