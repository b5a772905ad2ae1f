//! tmp
use std::time::Instant;
use rayon::prelude::*;
struct P(*mut f32);
unsafe impl Sync for P {}
fn mm(m: usize, n: usize, k: usize, a: (&[f32], usize, usize), b: (&[f32], usize, usize), out: &mut [f32], add: bool, parts: usize) {
    let step = m.div_ceil(parts).next_multiple_of(16);
    let o = P(out.as_mut_ptr());
    let o = &o;
    (0..m.div_ceil(step)).into_par_iter().for_each(|t| {
        let r0 = t * step; let r1 = (r0 + step).min(m);
        unsafe { gemm::gemm(r1 - r0, n, k, o.0.add(r0 * n), 1, n as isize, add, a.0.as_ptr().add(r0 * a.1), a.2 as isize, a.1 as isize, b.0.as_ptr(), b.2 as isize, b.1 as isize, 1.0, 1.0, false, false, false, gemm::Parallelism::None) }
    });
}
fn main() {
    let threads: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let rows: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let p: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    for (i, o) in [(384, 1152), (384, 384), (384, 1536), (1536, 384)] {
        let x = vec![0.5f32; rows * i]; let w = vec![0.5f32; i * o]; let y = vec![0.5f32; rows * o];
        let mut ox = vec![0f32; rows * i]; let mut ow = vec![0f32; i * o]; let mut oy = vec![0f32; rows * o];
        let mut best = [f64::MAX; 3];
        for _ in 0..25 {
            let s = Instant::now(); mm(rows, o, i, (&x, i, 1), (&w, 1, i), &mut oy, false, p); best[0] = best[0].min(s.elapsed().as_secs_f64());
            let s = Instant::now(); mm(rows, i, o, (&y, o, 1), (&w, i, 1), &mut ox, false, p); best[1] = best[1].min(s.elapsed().as_secs_f64());
            let s = Instant::now(); mm(o, i, rows, (&y, 1, o), (&x, i, 1), &mut ow, true, p); best[2] = best[2].min(s.elapsed().as_secs_f64());
        }
        let g = 2.0 * (rows * i * o) as f64 / 1e9;
        println!("{i}->{o}: forward {:.0} d_x {:.0} d_w {:.0} GFLOP/s", g / best[0], g / best[1], g / best[2]);
    }
}
