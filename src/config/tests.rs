use super::*;

fn config() -> Config {
    Config {
        listeners: vec![Listener::new("127.0.0.1:5514".parse().unwrap())],
        vector: Vector { endpoints: vec!["http://127.0.0.1:6000".parse().unwrap()], ..Vector::default() },
        ..Config::default()
    }
}

#[test]
fn defaults_are_valid() {
    assert!(config().checked().is_ok());
}

#[test]
fn every_problem_is_found_at_once() {
    let mut wrong = config();
    wrong.listeners.push(wrong.listeners[0].clone());
    wrong.listeners[0].workers = 0;
    wrong.vector.endpoints.clear();
    wrong.vector.streams = 0;
    wrong.batch.max_bytes = 4 << 20;
    let found: Vec<_> = wrong.checked().unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "vector.endpoints (--vector): nowhere to push: name a Vector, such as http://127.0.0.1:6000, or give `run` --stdout",
            "listeners[0].workers (--workers): 0 is out of range: give 1 to 256",
            "listeners[1].address (--listen): 127.0.0.1:5514 is there twice: give each address once",
            "batch.max_bytes (--batch-max-bytes): 4194304 is out of range: give 1024 to 4128768",
            "vector.streams (--streams): 0 is out of range: give 1 to 1024",
        ]
    );
}

#[test]
fn endpoints_are_urls_with_a_default_port() {
    let parse = |text: &str| text.parse::<Endpoint>().map(|e| e.to_string());
    assert_eq!(parse("http://vector"), Ok("http://vector:6000".into()));
    assert_eq!(parse("http://[::1]:7000/"), Ok("http://[::1]:7000".into()));
    assert_eq!(parse("https://vector"), Ok("https://vector:6000".into()));
    for wrong in [
        "",
        "vector:6000",
        "https://vector:6000/path",
        "http://vector:6000/path",
        "http://",
        "http://v:99999",
        "http://v:0",
        "http://u:p@v:1",
        "ftp://x",
        "http://a b",
    ] {
        let why = parse(wrong).unwrap_err();
        assert!(why.contains("http://127.0.0.1:6000"), "{wrong}: {why}");
    }
}
