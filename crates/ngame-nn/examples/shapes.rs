//! tmp
use std::time::Instant;
fn mm(m: usize, n: usize, k: usize, a: (&[f32], usize, usize), b: (&[f32], usize, usize), out: &mut [f32], add: bool, p: gemm::Parallelism) {
    unsafe { gemm::gemm(m, n, k, out.as_mut_ptr(), 1, n as isize, add, a.0.as_ptr(), a.2 as isize, a.1 as isize, b.0.as_ptr(), b.2 as isize, b.1 as isize, 1.0, 1.0, false, false, false, p) }
}
fn main() {
    let threads: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let rows: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    let p = if threads == 1 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(threads) };
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
