//! Frames of made-up states, as a terminal would show them.

mod made_up;

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value as Json, json};

use super::draw::draw;
use super::frame;
use super::model::Model;
use super::screen::Screen;
use made_up::{MadeUp, bare, steady};

const SIZES: [(u16, u16); 11] = [
    (1, 1),
    (20, 5),
    (80, 24),
    (200, 60),
    (300, 100),
    (2, 100),
    (300, 1),
    (69, 24),
    (149, 8),
    (150, 9),
    (40, 300),
];

fn rendered(screen: &Screen, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

/// The row that has this text, and the colour that the text begins with.
fn row(buffer: &Buffer, text: &str) -> (String, Color) {
    for cells in buffer.content.chunks(usize::from(buffer.area.width)) {
        let row: String = cells.iter().map(|cell| cell.symbol()).collect();
        if let Some((before, _)) = row.split_once(text) {
            return (row.clone(), cells[before.chars().count()].fg);
        }
    }
    panic!("no {text:?} in {buffer:?}");
}

fn has(screen: &Screen, size: (u16, u16), texts: &[&str]) {
    let frame = frame(screen, size);
    for text in texts {
        assert!(frame.contains(text), "no {text:?} in\n{frame}");
    }
}

fn press(screen: &mut Screen, key: char) -> bool {
    screen.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
}

#[test]
fn every_state_is_drawn_at_every_size() {
    let unreachable = {
        let mut screen = steady();
        screen.take(Instant::now(), Err("cannot reach it".into()));
        screen
    };
    let empty = Screen::new(Model::new("127.0.0.1:9615".into(), Duration::from_secs(1)), true);
    for mut screen in [steady(), bare(), unreachable, empty] {
        for help in [false, true] {
            screen.help = help;
            for size in SIZES {
                assert_eq!(rendered(&screen, size).area.as_size(), size.into());
            }
        }
    }
}

#[test]
fn what_matters_is_there_at_80_by_24_and_more_at_200_by_60() {
    let screen = steady();
    let both = [
        "sluicegate 0.1.0  127.0.0.1:9615  up 3d 04:12",
        "live  ready",
        "100,000/s",
        "96.5 MiB/s",
        "NIC, softnet *",
        "UdpRcvbufErrors *",
        "Rejected by Vector",
        "12.5 %",
        "8 % of 256.0 MiB",
        "20,000 wait, 4,000 in flight",
        "p50 12.0 ms",
        "p99 48.0 ms",
        "connected 2/2",
        "Top senders by messages",
        "192.0.2.1",
        "q quit",
    ];
    has(&screen, (80, 24), &both);
    has(&screen, (80, 24), &["Socket drops"]);
    has(&screen, (200, 60), &both);
    let more = [
        "Socket, kernel drops",
        "Top senders by bytes",
        "Top senders by parse failures",
        "100: bytes 80 %, age 20 %",
        "timestamp",
        "buffer   3 %",
    ];
    has(&screen, (200, 60), &more);
}

#[test]
fn a_sluicegate_that_tells_less_is_shown_with_dashes() {
    let screen = bare();
    has(
        &screen,
        (80, 24),
        &["up -", "NIC, softnet *              -", "Queue  -", "p50 -", "Received         100/s"],
    );
    let model = screen.model();
    assert!(model.status().unwrap().endpoints.is_none() && model.latest().unwrap().senders.is_none());
}

#[test]
fn what_grows_is_red_and_what_grew_is_yellow() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    state.next(|_| {});
    let calm = rendered(state.screen(), (80, 24));
    assert_eq!(row(&calm, "Socket drops").1, Color::Reset);
    assert_eq!(row(&calm, "Nothing is lost").1, Color::Green);

    state.next(|status| status["kernel_drops"] = json!(250));
    let growing = rendered(state.screen(), (80, 24));
    let (text, colour) = row(&growing, "Socket drops");
    assert!(text.contains("250") && text.contains("▲ 250/s") && colour == Color::Red, "{text}");
    let (text, colour) = row(&growing, "LOSING");
    assert!(text.contains("net.core.rmem_max") && colour == Color::Red, "{text}");

    state.next(|_| {});
    let over = rendered(state.screen(), (80, 24));
    assert_eq!(row(&over, "Socket drops").1, Color::Yellow);
    assert_eq!(row(&over, "earlier losses").1, Color::Green);
}

#[test]
fn the_cause_is_named_and_not_what_follows_from_it() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    state.next(|status| {
        status["kernel_drops"] = json!(9);
        status["queue"]["waiting_bytes"] = json!(250 << 20);
    });
    has(state.screen(), (80, 24), &["LOSING", "the queue is full", "98 % of 256.0 MiB"]);
    state.ready = Err("the queue is 98 % full".into());
    state.next(|status| {
        status["kernel_drops"] = json!(12);
        status["queue"] = Json::Null; // an older one
    });
    has(state.screen(), (80, 24), &["LOSING", "the queue is full"]);
    state.next(|status| {
        status["kernel_drops"] = json!(18);
        status["shed"] = json!(5);
        status["shed_by_reason"]["too_long"] = json!(5);
    });
    has(state.screen(), (80, 24), &["too_long): datagrams longer than --max-length"]);
    let (text, colour) = row(&rendered(state.screen(), (80, 24)), "  too_long");
    assert!(text.contains("▲ 5.0/s") && colour == Color::Red, "{text}");
    state.next(|status| status["rejected"] = json!(1));
    has(state.screen(), (80, 24), &["Vector refuses events for good"]);
}

#[test]
fn an_uneven_split_shows() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    state.next(|status| {
        let received = &mut status["workers"][2]["received"];
        *received = json!(received.as_u64().unwrap() + 900_000);
    });
    let buffer = rendered(state.screen(), (80, 40));
    let busy = row(&buffer, " 2  █");
    assert!(busy.0.contains(" 9"), "{}", busy.0);
    let bars: Vec<_> =
        [" 0  ", " 2  "].iter().map(|name| row(&buffer, name).0.matches('█').count()).collect();
    assert!(bars[0] == 0 && bars[1] > 10, "{bars:?}");

    // No row for each: a column for each, and the extremes in words.
    state.next(|status| {
        status["workers"] =
            (0..100).map(|n| json!({"worker": n, "received": if n == 7 { 5_000 } else { 50 }})).collect();
    });
    has(state.screen(), (80, 24), &["Workers (100)", "50.3 % (7)", "even: 1.0 %"]);
}

#[test]
fn an_endpoint_that_is_down_says_why() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    state.next(|status| {
        status["endpoints"][1]["state"] = json!("down");
        status["endpoints"][1]["connected"] = json!(0);
        status["endpoints"][1]["last_error"] = json!("Connection refused");
    });
    has(state.screen(), (80, 30), &["down 0/2", "Connection refused", "10.0.0.12:6000 is not connected"]);
    assert_eq!(row(&rendered(state.screen(), (80, 30)), "down 0/2").1, Color::Red);
    state.next(|status| {
        status["endpoints"][0]["state"] = json!("connecting");
        status["endpoints"][0]["connected"] = json!(0);
    });
    has(state.screen(), (80, 30), &["No Vector is connected"]);
}

#[test]
fn a_vector_that_acknowledges_nothing_is_noticed() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    let nothing_delivered = |status: &mut Json| {
        let delivered = status["delivered"].as_u64().unwrap();
        status["delivered"] = json!(delivered - 100_000);
    };
    state.next(nothing_delivered);
    has(state.screen(), (80, 24), &["Nothing is lost"]); // in a second that may be chance
    state.next(|status| {
        nothing_delivered(status);
        status["in_memory"] = json!(600_000);
    });
    has(state.screen(), (80, 24), &["Vector acknowledges nothing: 600,000 events wait"]);
}

#[test]
fn not_ready_says_why() {
    let mut state = MadeUp::new();
    state.ready = Err("the queue is 93 % full".into());
    state.next(|_| {});
    has(state.screen(), (80, 24), &["NOT READY", "Not ready: the queue is 93 % full"]);
    state.live = Err("worker 1 has not read its socket for 10 s".into());
    state.next(|_| {});
    has(state.screen(), (80, 24), &["NOT LIVE", "Not live: worker 1 has not read"]);
}

#[test]
fn an_outage_is_said_and_the_last_numbers_fade() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    state.next(|_| {});
    state.fail("cannot reach the admin port: connection refused.");
    state.fail("cannot reach the admin port: connection refused.");
    has(
        state.screen(),
        (80, 24),
        &["UNREACHABLE", "For 1 s: cannot reach the admin port", "Trying on.", "100,000/s"],
    );
    assert_eq!(row(&rendered(state.screen(), (80, 24)), "Received").1, Color::DarkGray);
    state.next(|status| {
        *status = made_up::status(0);
        status["uptime_secs"] = json!(0.5);
    });
    has(
        state.screen(),
        (80, 24),
        &["started again once", "Received             -", "counters begin at zero"],
    );
    state.next(|_| {});
    has(state.screen(), (80, 24), &["100,000/s", "Nothing is lost"]);
    assert!(
        !frame(state.screen(), (80, 24)).contains("/s-") && !frame(state.screen(), (80, 24)).contains(" -1")
    );
}

#[test]
fn keys_do_what_the_last_line_says() {
    let mut state = MadeUp::new();
    state.next(|_| {});
    let size = (80, 24);
    assert!(press(state.screen_mut(), 's'));
    has(state.screen(), size, &["Top senders by bytes", "s senders by parse failures"]);
    assert!(press(state.screen_mut(), 's') && press(state.screen_mut(), 's'));
    has(state.screen(), size, &["Top senders by messages"]);
    assert!(press(state.screen_mut(), '?'));
    has(state.screen(), size, &["▲ and red: it grows"]);

    assert!(press(state.screen_mut(), 'p'));
    let frozen = frame(state.screen(), size);
    assert!(frozen.contains("PAUSED"));
    state.next(|_| {});
    assert_eq!(frame(state.screen(), size), frozen);
    assert!(press(state.screen_mut(), ' '));
    has(state.screen(), size, &["100,000/s"]);
    assert!(!frame(state.screen(), size).contains("PAUSED"));

    assert!(!press(state.screen_mut(), 'q'));
    assert!(!state.screen_mut().press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)));
    assert!(!state.screen_mut().press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    assert!(press(state.screen_mut(), 'c'));
}

#[test]
fn what_a_peer_says_cannot_reach_the_terminal_as_control_characters() {
    let mut state = MadeUp::new();
    state.next(|status| {
        status["version"] = json!("\u{1b}[2J\u{7}1\n2");
        status["endpoints"][0]["endpoint"] =
            json!("\u{1b}]0;title\u{7}\r日本語のとても長い名前のエンドポイント:6000");
    });
    for size in SIZES {
        let buffer = rendered(state.screen(), size);
        assert!(buffer.content.iter().all(|cell| !cell.symbol().contains(char::is_control)));
    }
}

/// The picture in the documentation. `REWRITE_DOCS=1 cargo test picture` writes it anew.
#[test]
fn the_picture_in_the_documentation_is_what_is_drawn() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/top.txt");
    let drawn = frame(&made_up::picture(), (100, 30));
    if std::env::var_os("REWRITE_DOCS").is_some() {
        std::fs::write(path, &drawn).unwrap();
    }
    let shown = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(shown, drawn, "REWRITE_DOCS=1 cargo test picture writes docs/top.txt anew");
}
