use chrono::DateTime;

use super::*;
use crate::datagram::Timestamp;

fn context() -> Context {
    let mut context = Context { zone: "UTC".parse().unwrap(), ..Context::default() };
    context.calendar.turn_to(Timestamp { seconds: 1_796_000_000, nanos: 0 }); // 2026-11-30
    context
}

/// The fields that were found, in short, and the message.
fn found(datagram: &[u8]) -> (String, String) {
    let mut scratch = Scratch::default();
    let parts = recover(datagram, &context(), &mut scratch);
    let time = parts.timestamp.map(|time| {
        let time = DateTime::from_timestamp(time.seconds, time.nanos).unwrap();
        time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
    });
    let fields = [
        parts.facility.map(|facility| facility.as_str().to_owned()),
        parts.severity.map(|severity| severity.as_str().to_owned()),
        parts.version.map(|version| format!("v{version}")),
        time,
        parts.hostname.map(|name| format!("host={name}")),
        parts.appname.map(|name| format!("app={name}")),
        parts.procid.map(|procid| format!("proc={procid}")),
        parts.msgid.map(|msgid| format!("msgid={msgid}")),
        (!parts.structured_data.is_empty()).then(|| format!("sd={}", parts.structured_data.len())),
        parts.header.map(|header| format!("header={header}")),
        parts.error.map(|error| error.reason().to_owned()),
    ];
    let fields = fields.into_iter().flatten().collect::<Vec<_>>().join(" ");
    (fields, String::from_utf8_lossy(parts.message).into_owned())
}

#[track_caller]
fn check(datagram: &str, fields: &str, message: &str) {
    assert_eq!(found(datagram.as_bytes()), (fields.to_owned(), message.to_owned()), "{datagram}");
}

#[test]
fn ciscos_many_headers() {
    let time = "2026-10-11T22:14:15.100Z";
    check(
        "<189>77: .Oct 11 22:14:15.100: %SYS-5-X: t",
        &format!("local7 notice {time} header=77 timestamp"),
        "%SYS-5-X: t",
    );
    check(
        "<189>*Oct 11 22:14:15.100 UTC: %SYS-5-X: t",
        &format!("local7 notice {time} timestamp"),
        "%SYS-5-X: t",
    );
    check(
        "<189>77: sw1: *Oct 11 22:14:15.100: %SYS-5-X: t",
        &format!("local7 notice {time} host=sw1 header=77 timestamp"),
        "%SYS-5-X: t",
    );
    check(
        "<189>sw1: 2026 Oct 11 22:14:15.100 UTC: %SYS-5-X: t",
        &format!("local7 notice {time} host=sw1 timestamp"),
        "%SYS-5-X: t",
    );
    check(
        "<191>77: *Oct 11 22:14:15.100: ICMP: echo reply sent",
        &format!("local7 debug {time} header=77 timestamp"),
        "ICMP: echo reply sent",
    );
    check("<189>12: 1w2d: %SYS-5-X: t", "local7 notice header=12: 1w2d timestamp", "%SYS-5-X: t");
    check(
        "<189>12: Oct 11 22:14:15.100 IST: %SYS-5-X: t",
        "local7 notice timestamp",
        "12: Oct 11 22:14:15.100 IST: %SYS-5-X: t",
    );
    check(
        "<187>RP/0/RSP0/CPU0:Oct 11 22:14:15.100 UTC: ifmgr[252]: %A-B-3-C : t",
        "local7 err timestamp",
        "RP/0/RSP0/CPU0:Oct 11 22:14:15.100 UTC: ifmgr[252]: %A-B-3-C : t",
    );
    check(
        "<187>asr RP/0/RSP0/CPU0:Oct 11 22:14:15.100 UTC: ifmgr[252]: %A-B-3-C : t",
        &format!("local7 err {time} host=asr app=ifmgr proc=252 header=RP/0/RSP0/CPU0 timestamp"),
        "%A-B-3-C : t",
    );
}

#[test]
fn text_with_colons_and_percents_is_no_cisco() {
    for text in
        ["disk: 90% used: %full", "note: a: b: %X-9-Y: c", "%ASA without a severity", "100: apples: 5"]
    {
        check(&format!("<14>{text}"), "user info timestamp", text);
    }
}

#[test]
fn firewalls_with_pairs() {
    check(
        "<189>date=2026-10-11 time=22:14:15 devname=\"fgt\" logid=\"1\" x=\"a b\"",
        "local7 notice 2026-10-11T22:14:15Z host=fgt timestamp",
        "date=2026-10-11 time=22:14:15 devname=\"fgt\" logid=\"1\" x=\"a b\"",
    );
    check(
        "<189>date=2026-10-11 time=22:14:15 logid=1 tz=+0530",
        "local7 notice 2026-10-11T16:44:15Z timestamp",
        "date=2026-10-11 time=22:14:15 logid=1 tz=+0530",
    );
    check(
        "<30>device=\"SFW\" date=2026-10-11 time=22:14:15 timezone=\"CEST\" device_name=\"XG210\"",
        "daemon info 2026-10-11T20:14:15Z timestamp",
        "device=\"SFW\" date=2026-10-11 time=22:14:15 timezone=\"CEST\" device_name=\"XG210\"",
    );
    check(
        "<30>device_name=\"SFW\" timestamp=\"2026-10-11T22:14:15+0200\" x=1",
        "daemon info 2026-10-11T20:14:15Z timestamp",
        "device_name=\"SFW\" timestamp=\"2026-10-11T22:14:15+0200\" x=1",
    );
    check(
        "<134>id=fw sn=1 time=\"2026-10-11 22:14:15\" m=5\n\0",
        "local0 info 2026-10-11T22:14:15Z timestamp",
        "id=fw sn=1 time=\"2026-10-11 22:14:15\" m=5",
    );
    for text in
        ["date=today time=now logid=1", "id=5 name=x", "time=1|hostname=a", "date=2026-10-11 time=22:14:15"]
    {
        check(&format!("<14>{text}"), "user info timestamp", text);
    }
}

#[test]
fn dates_that_the_rfcs_do_not_know() {
    check(
        "<134>1 1791756855.5 MX84 urls src=1",
        "local0 info v1 2026-10-11T22:14:15.500Z host=MX84 timestamp",
        "urls src=1",
    );
    check(
        "<134> 31/10/2026:22:14:15 GMT ns 0-PPE-1 : x",
        "local0 info 2026-10-31T22:14:15Z host=ns timestamp",
        "0-PPE-1 : x",
    );
    check(
        "<134> 10/11/2026:22:14:15 GMT  0-PPE-1 : x",
        "local0 info 2026-10-11T22:14:15Z timestamp",
        "0-PPE-1 : x",
    );
    check(
        "<30>2026-10-11T22:14:15.5+0200 gw app: x",
        "daemon info 2026-10-11T20:14:15.500Z host=gw app=app timestamp",
        "x",
    );
    check(
        "<30>2026-10-11 22:14:15 just some words",
        "daemon info 2026-10-11T22:14:15Z timestamp",
        "just some words",
    );
    check("2026-10-11 22:14:15 ERROR main: words", "2026-10-11T22:14:15Z timestamp", "ERROR main: words");
    check(
        "<30>1 2026-10-11T22:14:15+0200 gw app 7 ID [a@1 b=\"c\"] x",
        "daemon info v1 2026-10-11T20:14:15Z host=gw app=app proc=7 msgid=ID sd=1 timestamp",
        "x",
    );
    check("<30>1 2026-10-11T22:14:15+0200 gw app", "daemon info v1 2026-10-11T20:14:15Z header", "gw app");
}

#[test]
fn framing_and_priorities() {
    check("\u{FEFF}<13>Oct 11 22:14:15 h a: x", "user notice 2026-10-11T22:14:15Z host=h app=a framing", "x");
    check("26 <13>Oct 11 22:14:15 h a: x", "user notice 2026-10-11T22:14:15Z host=h app=a framing", "x");
    check("27 <13>Oct 11 22:14:15 h a: x\n", "user notice 2026-10-11T22:14:15Z host=h app=a framing", "x");
    check("99 <13>Oct 11 22:14:15 h a: x", "unknown", "99 <13>Oct 11 22:14:15 h a: x");
    check(
        "\u{FEFF}<189>12: *Oct 11 22:14:15: %S-1-X: t",
        "local7 notice 2026-10-11T22:14:15Z header=12 timestamp",
        "%S-1-X: t",
    );
    for text in ["<192>x", "<999>x", "<13x", "<1234>x", "<13"] {
        check(text, "priority", text);
    }
    for text in ["<>x", "<a>x", "hello", "{\"a\":1}", "x\0"] {
        check(text, "unknown", text);
    }
    for text in ["\n", " ", "\0\0"] {
        check(text, "blank", text);
    }
}
