//! Messages to measure with, made from a seed.

use fastrand::Rng;

/// Messages of network devices, all of which parse: half RFC 5424, some of it with structured data, half RFC 3164.
pub fn parsed(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| device(&mut random).into_bytes()).collect()
}

/// What a server says of itself: kernel, auditd, systemd, cron, and 3 % of sshd's failed logins.
pub fn noise(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| server(&mut random).into_bytes()).collect()
}

fn device(random: &mut Rng) -> String {
    let (host, pid, port) = (random.u8(1..40), random.u16(300..), random.u16(1_024..));
    let (a, b, c) = (random.u8(..), random.u8(..), random.u32(..));
    let time =
        format!("2026-10-11T22:{:02}:{:02}.{:03}Z", random.u8(..60), random.u8(..60), random.u16(..1_000));
    match random.u8(..4) {
        0 => format!(
            "<165>1 {time} fw-{host} mgd {pid} UI_CMDLINE_READ_LINE [junos@2636.1.1.1.2.57 username=\"user{a}\" \
             command=\"show route 10.{a}.{b}.0\"] User 'user{a}' ran a command, session {c}"
        ),
        1 => format!(
            "<134>1 {time} fw-{host} filterlog {pid} - - {c},,,1000000103,igb0,match,block,in,4,0x0,,52,0,0,DF,6,tcp,44,203.0.113.{a},192.0.2.{b},{port},443,0,S"
        ),
        _ => format!(
            "<28>Oct 11 22:{:02}:{:02} sw-{host} mib2d[{pid}]: SNMP_TRAP_LINK_DOWN: ifIndex {c}, ifAdminStatus up(1), ifOperStatus down(2), ifName xe-{a}/0/{b}",
            random.u8(..60),
            random.u8(..60)
        ),
    }
}

fn server(random: &mut Rng) -> String {
    let head = format!(
        "Oct 11 {:02}:{:02}:{:02} srv-{}",
        random.u8(..24),
        random.u8(..60),
        random.u8(..60),
        random.u8(1..40)
    );
    let (a, b, n) = (random.u8(..), random.u8(..), random.u32(..));
    match random.u8(..100) {
        0..3 => format!(
            "<38>{head} sshd[{}]: Failed password for invalid user test from 198.51.100.{a} port {} ssh2",
            n % 65_536,
            n % 50_000
        ),
        3..35 => format!(
            "<6>{head} kernel: [{n}.{a:06}] eth0: link is up, 1000 Mbps full duplex, flow control rx/tx, lpa 0x{b:04X}"
        ),
        35..70 => format!(
            "<86>{head} audit[{a}]: SYSCALL arch=c000003e syscall={b} success=yes exit=0 a0=ffffff9c a1={n:x} items=1 ppid=1 pid={a} auid=4294967295 comm=\"cron\" exe=\"/usr/sbin/cron\" key=(null)"
        ),
        70..90 => format!("<30>{head} systemd[1]: Started Session {n} of user root."),
        _ => format!(
            "<78>{head} CRON[{}]: (root) CMD (   cd / && run-parts --report /etc/cron.hourly)",
            n % 65_536
        ),
    }
}
