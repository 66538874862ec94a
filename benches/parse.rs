//! Parsing and encoding one message: ours, beside VRL's `parse_syslog` and the encoding of its value.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sluicegate::datagram::{Datagram, Timestamp};
use sluicegate::encode::encode_value;
use sluicegate::parse::{EventMaker, Mode, Options};
use vrl::compiler::runtime::Runtime;
use vrl::compiler::{Program, TargetValue, TimeZone};
use vrl::value::{Secrets, Value};

const MESSAGES: [(&str, &str); 6] = [
    (
        "rfc3164",
        "<28>Oct 11 22:14:15 mx-core-1 mib2d[1484]: SNMP_TRAP_LINK_DOWN: ifIndex 702, ifAdminStatus up(1), ifOperStatus down(2), ifName xe-1/0/3, and some more words to make it two hundred bytes",
    ),
    (
        "rfc5424",
        "<165>1 2026-10-11T22:14:15.719Z mx-core-1 mgd 8812 UI_CMDLINE - User 'netops', command 'show bgp summary' and some more words so that the whole of it is two hundred bytes long, roughly, as they are",
    ),
    (
        "rfc5424_sd",
        "<165>1 2026-10-11T22:14:15.719Z mx-core-1 mgd 8812 UI_CMDLINE_READ_LINE [junos@2636.1.1.1.2.57 username=\"netops\" command=\"show bgp summary\"] User 'netops', command 'show bgp summary', and so on",
    ),
    (
        "cisco",
        "<190>88213: edge-rtr-01: 0088219: Oct 11 22:14:15.702 UTC: %SEC-6-IPACCESSLOGP: list ACL-IN denied udp 198.51.100.20(5353) -> 203.0.113.9(53), 1 packet, and some more words to fill it up",
    ),
    (
        "fortinet",
        "<189>date=2026-10-11 time=22:14:15 devname=\"fgt-1\" devid=\"FGT00000000000000\" tz=\"+0200\" logid=\"0000000013\" type=\"traffic\" subtype=\"forward\" level=\"notice\" vd=\"root\" srcip=192.0.2.5 srcport=50811",
    ),
    (
        "json",
        "<133>{\"ts\": 1791756855, \"node\": \"scan-1\", \"result\": \"clean\", \"files\": 12345, \"bytes\": 987654321, \"engine\": \"1.2.3\", \"signatures\": \"2026-10-11\", \"path\": \"/srv/data/incoming/today\", \"n\": 1}",
    ),
];

fn options(mode: Mode) -> Options {
    Options { mode, timezone: "UTC".parse().expect("a zone"), ..Options::default() }
}

fn through_vrl(program: &Program, runtime: &mut Runtime, payload: &[u8], out: &mut Vec<u8>) {
    let value = Value::Object([("message".into(), Value::Bytes(payload.to_vec().into()))].into());
    let mut target = TargetValue { value, metadata: Value::Object([].into()), secrets: Secrets::new() };
    let utc = TimeZone::Named("UTC".parse().expect("a zone"));
    // What does not parse costs the attempt; the event is encoded as it was.
    runtime.resolve(&mut target, program, &utc).ok();
    encode_value(out, &target.value);
}

fn parse(criterion: &mut Criterion) {
    let program = vrl::compiler::compile(". = parse_syslog!(.message)", &vrl::stdlib::all())
        .expect("it compiles")
        .program;
    let peer = "192.0.2.1:514".parse().expect("an address");
    let now = Timestamp { seconds: 1_796_000_000, nanos: 5 };
    let mut group = criterion.benchmark_group("message");
    group.throughput(Throughput::Elements(1));
    for (name, text) in MESSAGES {
        let datagram = Datagram { payload: text.as_bytes(), peer, received: None, truncated: false };
        for (kind, mode) in [("raw", Mode::None), ("syslog", Mode::Syslog)] {
            let mut maker = EventMaker::new(&options(mode));
            let mut encoded = Vec::new();
            group.bench_function(BenchmarkId::new(kind, name), |bencher| {
                bencher.iter(|| {
                    encoded.clear();
                    maker.make(&datagram, now, &mut encoded)
                });
            });
        }
        let (mut runtime, mut out) = (Runtime::default(), Vec::new());
        group.bench_function(BenchmarkId::new("vrl", name), |bencher| {
            bencher.iter(|| {
                out.clear();
                through_vrl(&program, &mut runtime, text.as_bytes(), &mut out);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
