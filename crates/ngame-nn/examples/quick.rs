use ngame_nn::*;
use std::time::Instant;
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (seqs, len, threads, dim) = (a[0], a[1], a[2], a[3]);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    let cfg = TransformerConfig {
        vocabulary_size: 30522,
        dim,
        n_layers: 6,
        n_heads: 12,
        feed_forward_dim: 4 * dim,
        max_positions: 512,
        n_token_types: 2,
        layer_norm_epsilon: 1e-12,
        dropout: 0.0,
        attention_dropout: 0.0,
        pooling: Pooling::Mean,
    };
    let t = Transformer::new(cfg);
    let mut p = t.initial_weights(1);
    let mut g = Gradients::zeros(t.layout());
    let mut o = AdamW::new(AdamWConfig::default(), t.layout());
    let ids: Vec<u32> = (0..seqs * len).map(|i| ((i * 7919) % 30000) as u32).collect();
    let off: Vec<usize> = (0..=seqs).map(|i| i * len).collect();
    let b = Batch::new(&ids, &off);
    let mut act = vec![0.0; t.activation_len(seqs, seqs * len)];
    let mut scr = vec![0.0; t.scratch_len(seqs, seqs * len)];
    let mut v = vec![0.0; seqs * dim];
    let d: Vec<f32> = (0..seqs * dim).map(|i| ((i * 31) % 17) as f32 - 8.0).collect();
    let (mut best, mut bf, mut bb, mut bo) = (f64::MAX, 0.0, 0.0, 0.0);
    for _ in 0..6 {
        let s = Instant::now();
        t.forward(p.values(), b, Dropout::Off, &mut act, &mut scr, &mut v);
        let f = s.elapsed().as_secs_f64();
        t.backward(p.values(), b, Dropout::Off, &mut act, &mut scr, &d, &mut g);
        let bk = s.elapsed().as_secs_f64();
        o.step(1e-5, &mut p, &mut g);
        let e = s.elapsed().as_secs_f64();
        if e < best {
            best = e;
            bf = f;
            bb = bk - f;
            bo = e - bk;
        }
    }
    println!(
        "step {best:.3} forward {bf:.3} backward {bb:.3} adam {bo:.3} tokens/s {:.0}",
        (seqs * len) as f64 / best
    );
}
