//! Endpoints: found by name, connected to, a `vector` source, and, if asked for, an event taken.

use std::net::{IpAddr, SocketAddr};

use chrono::{DateTime, Utc};
use tonic::Code;

use super::dial::{Answer, Facts};
use super::finding::Finding;
use crate::books::Certificates;
use crate::config::Endpoint;
use crate::push::Health;
use crate::tls::shown_time;

/// Each stage that was come to; behind one that failed altogether there is none.
pub(super) fn judge(facts: &Facts, now: DateTime<Utc>) -> Vec<Finding> {
    let Facts { endpoint, resolved, dialled, sent } = facts;
    let addresses = match resolved {
        Err(error) => return vec![unresolved(endpoint, error)],
        Ok(addresses) => addresses,
    };
    let mut found = Vec::new();
    found.extend(endpoint.host.parse::<IpAddr>().is_err().then(|| resolved_to(endpoint, addresses)));
    found.push(connected(facts));
    found.extend(tls(facts, now));
    if dialled.iter().any(|dialled| dialled.health.is_some()) {
        found.push(health(facts));
    }
    found.extend(sent.as_ref().map(|sent| acknowledged(endpoint, sent)));
    found
}

fn unresolved(endpoint: &Endpoint, error: &str) -> Finding {
    let host = &endpoint.host;
    Finding::ok("endpoint.resolve", endpoint, error, "there is nowhere to push").fail([
        format!("--vector with a name that `getent hosts {host}` knows"),
        "in Kubernetes: name.namespace.svc of a Service; a short name is known in its own namespace only"
            .to_owned(),
    ])
}

fn resolved_to(endpoint: &Endpoint, addresses: &[SocketAddr]) -> Finding {
    let list: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
    Finding::ok("endpoint.resolve", endpoint, list.join(", "), "connections begin with different ones")
}

/// What an `https` endpoint's certificate, and ours, are worth; none over plaintext.
fn tls(facts: &Facts, now: DateTime<Utc>) -> Option<Finding> {
    let Facts { endpoint, dialled, .. } = facts;
    let tried: Vec<_> =
        dialled.iter().filter_map(|dialled| Some((dialled.address, dialled.tls.as_ref()?))).collect();
    let (_, first) = tried.first()?;
    let finding = |found: String, means: &str| Finding::ok("endpoint.tls", endpoint, found, means);
    let wrong: Vec<_> = tried
        .iter()
        .filter_map(|(address, tls)| Some(format!("{address}: {}", tls.as_ref().err()?)))
        .collect();
    if !wrong.is_empty() {
        return Some(finding(wrong.join("; "), "nothing is pushed there: events wait").fail([
            "the line above says which file or option; docs/tls.md has both sides".to_owned(),
            format!(
                "`openssl s_client -connect {}:{} -alpn h2` shows its certificate",
                endpoint.host, endpoint.port
            ),
        ]));
    }
    let seen = first.as_ref().ok()?;
    let certificates = [("server's", &seen.server), ("client's", &seen.client)];
    let known =
        || certificates.iter().filter_map(|(whose, certificate)| Some((*whose, certificate.as_ref()?)));
    let shown = known()
        .map(|(whose, c)| format!("{whose} certificate {} until {}", c.subject, shown_time(c.expires)));
    let shown: Vec<_> = seen.protocol.clone().into_iter().chain(shown).collect();
    let soon: Vec<_> =
        known().filter(|(_, c)| c.expires < now + Certificates::SOON).map(|(whose, _)| whose).collect();
    Some(match soon.is_empty() {
        true => finding(shown.join(", "), "both sides agree"),
        false => {
            finding(shown.join(", "), "one of them expires within 14 days: events would wait from then on")
                .warn([format!(
                    "renew the {} certificate; the files are read again at every new connection",
                    soon.join(" and the ")
                )])
        }
    })
}

fn connected(facts: &Facts) -> Finding {
    let Facts { endpoint, dialled, .. } = facts;
    let times: Vec<_> = dialled.iter().filter_map(|dialled| dialled.connected.as_ref().ok()).collect();
    let slowest = times.iter().max().map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let errors: Vec<_> = dialled
        .iter()
        .filter_map(|dialled| Some(format!("{}: {}", dialled.address, dialled.connected.as_ref().err()?)))
        .collect();
    let (good, all) = (times.len(), dialled.len());
    let finding = |found: String, means: &str| Finding::ok("endpoint.connect", endpoint, found, means);
    let port = endpoint.port;
    let start = format!("start Vector there, with a `vector` source: address = \"0.0.0.0:{port}\"");
    let open = format!(
        "if it runs: let TCP port {port} through (firewall, NetworkPolicy), or mend the port in --vector"
    );
    match good {
        _ if errors.is_empty() => {
            finding(format!("{good} of {all} connected, within {slowest:.1} ms"), "it is there")
        }
        0 => finding(errors.join("; "), "nothing can be pushed: events wait in memory").fail([start, open]),
        _ => finding(
            format!("{good} of {all} connected; {}", errors.join("; ")),
            "the others are used; those that fail cost time at every new connection",
        )
        .warn([start, open]),
    }
}

fn health(facts: &Facts) -> Finding {
    let Facts { endpoint, dialled, .. } = facts;
    let asked: Vec<_> =
        dialled.iter().filter_map(|dialled| Some((dialled.address, dialled.health.as_ref()?))).collect();
    let wrong = |(address, answer): &(SocketAddr, &Answer<Health>)| match answer {
        Ok(Health::Serving) => None,
        Ok(Health::NotServing) => Some(format!("{address}: NOT_SERVING")),
        Ok(Health::Other(status)) => Some(format!("{address}: {:?} {}", status.code(), status.message())),
        Err(error) => Some(format!("{address}: {error}")),
    };
    let wrong: Vec<_> = asked.iter().filter_map(wrong).collect();
    if wrong.is_empty() {
        return Finding::ok(
            "endpoint.health",
            endpoint,
            "HealthCheck answered: SERVING",
            "it is a `vector` source",
        );
    }
    Finding::ok(
        "endpoint.health",
        endpoint,
        wrong.join("; "),
        "what answers there is no `vector` source, or not a well one",
    )
    .fail([
        "--vector with the address of a source of `type = \"vector\"` (its port is 6000 where none is set)"
            .to_owned(),
        "a proxy between has to speak gRPC (HTTP/2 without TLS)".to_owned(),
    ])
}

fn acknowledged(endpoint: &Endpoint, sent: &Answer<(tonic::Status, std::time::Duration)>) -> Finding {
    let event = "one event sent, message \"sluicegate check\"";
    let finding =
        |rest: String, means: &str| Finding::ok("endpoint.send", endpoint, format!("{event}; {rest}"), means);
    match sent {
        Ok((status, time)) if status.code() == Code::Ok => {
            finding(format!("acknowledged in {:.1} ms", time.as_secs_f64() * 1e3), "events arrive")
        }
        Ok((status, _)) => finding(
            format!("{:?} {}", status.code(), status.message()),
            "Vector, or a sink behind it, did not take it",
        )
        .fail(["Vector's log names the sink; mend that".to_owned()]),
        Err(error) => finding(error.clone(), "it may still arrive: a slow sink acknowledges late").warn([
            "a shorter batch.timeout_secs of the sinks behind the source, or --request-timeout above what they take".to_owned(),
        ]),
    }
}

#[cfg(test)]
mod tests;
