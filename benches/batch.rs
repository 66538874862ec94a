//! What is done to a batch: filled, halved, compressed, handed over.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prost::Message;
use sluicegate::batch::made_of;
use sluicegate::bench::HotPath;
use sluicegate::config::Buffer;
use sluicegate::datagram::Timestamp;
use sluicegate::parse::Mode;
use sluicegate::proto::event::event_wrapper::Event;
use sluicegate::proto::event::{EventWrapper, Log, Value, value::Kind};
use sluicegate::proto::vector::PushEventsRequest;
use sluicegate::queue::Queue;
use tokio::runtime::Builder;

const EVENTS: u64 = 1_000;
const TIME: Timestamp = Timestamp { seconds: 1_796_000_000, nanos: 5 };

/// A request of 1,000 raw events.
fn request() -> Vec<u8> {
    let event = |message: &Vec<u8>| {
        let value = Value { kind: Some(Kind::RawBytes(message.clone().into())) };
        let fields = [("message".to_owned(), value)].into();
        EventWrapper { event: Some(Event::Log(Log { fields, value: None })) }
    };
    let events = HotPath::messages(Mode::None).iter().map(event).collect();
    PushEventsRequest { events }.encode_to_vec()
}

/// Messages made into events, batched, queued and settled.
fn filled(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hot_path");
    group.throughput(Throughput::Elements(EVENTS));
    for (name, mode) in [("raw", Mode::None), ("syslog", Mode::Syslog)] {
        let (mut path, messages) = (HotPath::new(mode), HotPath::messages(mode));
        group.bench_function(name, |bencher| bencher.iter(|| path.take(&messages, EVENTS as usize)));
    }
    group.finish();
}

fn handled(criterion: &mut Criterion) {
    let batch = made_of(&request(), EVENTS, TIME);
    criterion.bench_function("batch/halves", |bencher| bencher.iter(|| batch.halves()));
    let (queue, runtime) =
        (Queue::new(Buffer::default()), Builder::new_current_thread().build().expect("a runtime"));
    criterion.bench_function("queue/push_lease_settle", |bencher| {
        bencher.iter(|| {
            queue.push(batch.clone()).expect("room");
            runtime.block_on(Queue::lease(&Arc::clone(&queue))).expect("a batch").settle()
        });
    });
}

criterion_group!(benches, filled, handled);
criterion_main!(benches);
