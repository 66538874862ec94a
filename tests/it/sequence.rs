//! The order of arrival, rebuilt from what arrived.

use std::collections::BTreeMap;
use std::future::pending;

use sluicegate::load::parse_marker;
use sluicegate::parse::{Mode, Program};
use sluicegate::pipeline::Pipeline;

use crate::support::scenario::{config, load, send};
use crate::support::vector::{FakeVector, bytes};

/// Under `spread` a flow's datagrams overtake each other; sorted by the field they are as they came. For each way to make an
/// event: as it is, parsed, through a program.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_flow_over_many_workers_sort_in_the_order_of_arrival() {
    let program = Program::compile("test", ".by_program = true").unwrap();
    for (mode, program) in [(Mode::None, None), (Mode::Syslog, None), (Mode::Syslog, Some(program))] {
        let vector = FakeVector::start().await;
        let mut config = config(vector.address);
        config.listeners[0].workers = 4;
        config.parse.mode = mode;
        config.parse.program = program;
        config.parse.shape.sequence_key = "sequence".into();
        let pipeline = Pipeline::start(&config).unwrap();
        let target = pipeline.addresses().next().unwrap();
        let sent = send(load(target, 20_000, 1.0)).await;
        let report = pipeline.stop(config.shutdown_timeout, pending()).await;
        assert_eq!(report.delivered, sent.sent, "{report:?}");

        let number = |log: &_| {
            let message = bytes(log, "message");
            let at = message.windows(4).position(|four| four == b"seq=").unwrap();
            parse_marker(&message[at..]).unwrap().number
        };
        let mut events: Vec<_> = vector
            .logs()
            .iter()
            .map(|log| (String::from_utf8(bytes(log, "sequence").to_vec()).unwrap(), number(log)))
            .collect();
        let arrived: Vec<_> = events.iter().map(|(_, number)| *number).collect();
        assert!(!arrived.is_sorted(), "they overtook each other");
        events.sort();
        let sorted: Vec<_> = events.iter().map(|(_, number)| *number).collect();
        assert_eq!(sorted, (0..sent.sent).collect::<Vec<_>>());

        let mut workers = BTreeMap::<&str, Vec<u64>>::new();
        for (sequence, _) in &events {
            let (rest, number) = sequence.rsplit_once('-').unwrap();
            let worker = rest.split_once('-').unwrap().1; // with the run
            workers.entry(worker).or_default().push(number.parse().unwrap());
        }
        assert_eq!(workers.len(), 4, "{:?}", workers.keys());
        for numbers in workers.values() {
            let expected: Vec<_> = (1..=numbers.len() as u64).collect();
            assert_eq!(*numbers, expected, "a worker's numbers have no gap");
        }
    }
}
