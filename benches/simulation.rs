//! Loss on paper, for machines that are not here: workers, buffers and stalls. Prints the tables of docs/scale.md.

use fastrand::Rng;
use sluicegate::bench::simulation::Model;

/// What a datagram takes of a socket's buffer, bytes: 1,100 of payload, as the kernel charges it (skbuff truesize).
const CHARGED: usize = 2_304;

/// A worker's share of a datagram's CPU, seconds, as measured with `--parse none`; the pushing is beside it.
const COST: f64 = 1.6e-6;

/// A minute of the model, with a stall of each worker every other second.
fn lost(rate: f64, workers: usize, buffer_mib: usize, stall_ms: f64) -> f64 {
    let model = Model {
        rate,
        workers,
        cost: COST,
        cores: workers,
        buffer: (buffer_mib << 20) / CHARGED,
        stall: stall_ms / 1_000.0,
        stalls: 0.5,
        seconds: 60.0,
    };
    let (sent, lost) = model.run(&mut Rng::with_seed(1));
    100.0 * lost as f64 / sent as f64
}

fn main() {
    println!("Percent lost at 150,000/s, each worker stalled every 2 s on average:\n");
    println!("| workers | buffer of a socket | no stall | 20 ms | 100 ms | 300 ms | 1 s |");
    println!("|---|---|---|---|---|---|---|");
    for workers in [1, 2, 4, 8, 16] {
        for buffer in [4, 32] {
            let cells =
                [0.0, 20.0, 100.0, 300.0, 1_000.0].map(|stall| lost(150_000.0, workers, buffer, stall));
            let cells: Vec<_> = cells.iter().map(|lost| format!("{lost:.2}")).collect();
            println!("| {workers} | {buffer} MiB | {} |", cells.join(" | "));
        }
    }
    println!("\nPercent lost without stalls, by rate, 32 MiB:\n");
    println!("| workers | 350,000/s | 600,000/s | 1,000,000/s | 2,000,000/s |");
    println!("|---|---|---|---|---|");
    for workers in [1, 2, 4, 8] {
        let cells = [350e3, 600e3, 1e6, 2e6].map(|rate| format!("{:.2}", lost(rate, workers, 32, 0.0)));
        println!("| {workers} | {} |", cells.join(" | "));
    }
}
