use std::time::Duration;

use tonic::Status;

use super::super::dial::Dialled;
use super::super::finding::Level;
use super::*;
use crate::push::Seen;
use crate::tls::Certificate;

fn facts(host: &str, answers: Vec<(Answer<Duration>, Option<Answer<Health>>)>) -> Facts {
    let dialled: Vec<_> = answers
        .into_iter()
        .zip(1u8..)
        .map(|((connected, health), number)| Dialled {
            address: ([192, 0, 2, number], 6_000).into(),
            connected,
            tls: None,
            health,
        })
        .collect();
    let endpoint = Endpoint { tls: false, host: host.to_owned(), port: 6_000 };
    Facts {
        endpoint,
        resolved: Ok(dialled.iter().map(|dialled| dialled.address).collect()),
        dialled,
        sent: None,
    }
}

const NOW: &str = "2026-12-01T00:00:00Z";

fn judged(facts: &Facts) -> Vec<Finding> {
    judge(facts, NOW.parse().unwrap())
}

fn levels(facts: &Facts) -> Vec<(&'static str, Level)> {
    judged(facts).iter().map(|finding| (finding.id, finding.level)).collect()
}

fn well() -> (Answer<Duration>, Option<Answer<Health>>) {
    (Ok(Duration::from_millis(2)), Some(Ok(Health::Serving)))
}

fn refused() -> (Answer<Duration>, Option<Answer<Health>>) {
    (Err("Connection refused".to_owned()), None)
}

#[test]
fn a_well_endpoint_is_well_and_a_name_shows_its_addresses() {
    let by_address = facts("192.0.2.1", vec![well()]);
    assert_eq!(levels(&by_address), [("endpoint.connect", Level::Ok), ("endpoint.health", Level::Ok)]);
    let by_name = judged(&facts("vector.example", vec![well(), well()]));
    assert_eq!((by_name[0].id, by_name[0].found.as_str()), ("endpoint.resolve", "192.0.2.1, 192.0.2.2"));
    assert_eq!(by_name[1].found, "2 of 2 connected, within 2.0 ms");
}

#[test]
fn a_stage_that_fails_altogether_ends_it() {
    let unknown =
        Facts { resolved: Err("the name cannot be resolved".to_owned()), ..facts("no.example", vec![]) };
    assert_eq!(levels(&unknown), [("endpoint.resolve", Level::Fail)]);
    let dead = facts("192.0.2.1", vec![refused()]);
    assert_eq!(levels(&dead), [("endpoint.connect", Level::Fail)]);
    assert!(judged(&dead)[0].mend[0].contains("0.0.0.0:6000"));
    let half = facts("192.0.2.1", vec![refused(), well()]);
    assert_eq!(levels(&half), [("endpoint.connect", Level::Warn), ("endpoint.health", Level::Ok)]);
}

#[test]
fn what_is_no_vector_fails() {
    let connected = || Ok(Duration::from_millis(2));
    for answer in [
        Ok(Health::NotServing),
        Ok(Health::Other(Status::unimplemented("HTTP status 404"))),
        Err("connection closed".to_owned()),
    ] {
        let found = judged(&facts("192.0.2.1", vec![well(), (connected(), Some(answer))]));
        assert_eq!((found[1].id, found[1].level), ("endpoint.health", Level::Fail));
        assert!(found[1].found.starts_with("192.0.2.2:6000: "), "{found:?}");
    }
}

#[test]
fn a_test_event_is_acknowledged_refused_or_late() {
    let sent = |sent| {
        let facts = Facts { sent: Some(sent), ..facts("192.0.2.1", vec![well()]) };
        judged(&facts).pop().unwrap()
    };
    let ms = Duration::from_millis(3);
    let taken = sent(Ok((Status::ok(""), ms)));
    assert!(taken.level == Level::Ok && taken.found.contains("one event sent"), "{taken:?}");
    assert_eq!(sent(Ok((Status::data_loss("Delivery failed"), ms))).level, Level::Fail);
    let late = sent(Err("no answer within 3 s".to_owned()));
    assert!(late.level == Level::Warn && late.means.contains("may still arrive"), "{late:?}");
}

#[test]
fn certificates_are_well_about_to_expire_or_wrong() {
    let certificate = |expires: &str| Certificate {
        subject: "CN=vector".to_owned(),
        issuer: "CN=ca".to_owned(),
        names: Vec::new(),
        begins: NOW.parse().unwrap(),
        expires: expires.parse().unwrap(),
    };
    let judged_tls = |answer: Answer<Seen>| {
        let mut facts = facts("192.0.2.1", vec![well()]);
        facts.dialled[0].tls = Some(answer);
        let found = judged(&facts);
        let tls = found.iter().find(|finding| finding.id == "endpoint.tls").unwrap();
        (tls.level, tls.found.clone())
    };
    let seen = |expires| Seen {
        server: Some(certificate(expires)),
        protocol: Some("TLSv1_3".to_owned()),
        client: None,
    };
    let well = judged_tls(Ok(seen("2027-12-01T00:00:00Z")));
    assert_eq!(
        well,
        (Level::Ok, "TLSv1_3, server's certificate CN=vector until 2027-12-01T00:00:00Z".to_owned())
    );
    assert_eq!(judged_tls(Ok(seen("2026-12-14T00:00:00Z"))).0, Level::Warn);
    let (level, found) = judged_tls(Err("unknown issuer".to_owned()));
    assert_eq!((level, found.as_str()), (Level::Fail, "192.0.2.1:6000: unknown issuer"));
}
