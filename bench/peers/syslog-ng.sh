#!/bin/sh
# syslog-ng in sluicegate's place: UDP_PORT SINK_PORT WORKERS. SYSLOG_NG names the program, where it is not in PATH.
#
# A socket for each worker with SO_REUSEPORT, as its documentation has it (eBPF steering needs a build of its own), lines over
# TCP, and no parsing.
set -eu
udp=$1 sink=$2 workers=$3
directory=$(mktemp -d)
sources=
for worker in $(seq "$workers"); do
    sources="$sources
    udp(ip(127.0.0.1) port($udp) persist-name("s$worker") so-reuseport(1) so-rcvbuf(67108864) flags(no-parse) log-fetch-limit(1000) log-iw-size(100000));"
done
cat >"$directory/syslog-ng.conf" <<CONF
@version: 3.38
options { threaded(yes); keep-hostname(yes); use-dns(no); dns-cache(no); log-msg-size(65536); stats-freq(0); };
source s {$sources
};
destination d { tcp("127.0.0.1" port($sink) template("\$MSG\n") log-fifo-size(1000000) flush-lines(1000)); };
log { source(s); destination(d); };
CONF
exec "${SYSLOG_NG:-syslog-ng}" -F -f "$directory/syslog-ng.conf" -R "$directory/persist" -p "$directory/pid" -c "$directory/ctl"
