//! Whether a sender may send, among 10,000 networks, and so much: a sender that changes with every datagram, and runs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sluicegate::config::{Origins, RateLimit};
use sluicegate::datagram::Timestamp;
use sluicegate::live::Live;
use sluicegate::receive::{Gate, Limiter, Rules};

const NETWORKS: usize = 10_000;
const SENDERS: usize = 4_096;

fn four(random: &mut fastrand::Rng) -> IpAddr {
    Ipv4Addr::from(random.u32(..)).into()
}

fn six(random: &mut fastrand::Rng) -> IpAddr {
    Ipv6Addr::from(0x2001_0db8 << 96 | random.u128(..) >> 32).into()
}

fn mapped(random: &mut fastrand::Rng) -> IpAddr {
    Ipv4Addr::from(random.u32(..)).to_ipv6_mapped().into()
}

fn gate(limit: RateLimit) -> Gate {
    let mut random = fastrand::Rng::with_seed(1);
    let network = |at: usize| match at % 2 {
        0 => format!("{}/{}", four(&mut random), random.u32(16..=32)),
        _ => format!("{}/{}", six(&mut random), random.u32(40..=128)),
    };
    let list: Vec<_> = (0..NETWORKS).map(network).collect();
    let permit_origin = Origins::parse(&list).expect("networks");
    let limiter = Limiter::new(limit, Timestamp::now()).map(Arc::new);
    Gate::new(Arc::new(Live::new(Rules { permit_origin, limiter })))
}

fn permit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("permit");
    group.throughput(Throughput::Elements(SENDERS as u64));
    type Draw = fn(&mut fastrand::Rng) -> IpAddr;
    let kinds: [(&str, Draw); 3] = [("ipv4", four), ("ipv6", six), ("mapped", mapped)];
    let now = Timestamp::now();
    for (limited, threshold) in [("", 0), ("_and_limit", 1_000)] {
        for (name, draw) in kinds {
            let mut random = fastrand::Rng::with_seed(2);
            let senders: Vec<_> = (0..SENDERS).map(|_| draw(&mut random)).collect();
            for run in [1, 16] {
                let mut gate = gate(RateLimit { threshold, ..RateLimit::default() });
                group.bench_function(format!("{name}{limited}_runs_of_{run}"), |bencher| {
                    bencher.iter(|| {
                        gate.follow();
                        let refused = |at: &usize| gate.refuses(senders[at / run], now, || run).is_some();
                        (0..SENDERS).filter(refused).count()
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, permit);
criterion_main!(benches);
