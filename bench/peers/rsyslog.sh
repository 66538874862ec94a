#!/bin/sh
# rsyslogd in sluicegate's place: UDP_PORT SINK_PORT WORKERS. RSYSLOG_THREADS sets another number of threads than WORKERS.
#
# The fan-out that people use in front of Vector: imudp with several threads on one socket, a queue in memory, lines over TCP.
# Debian's rsyslog has no pool of targets in one action, so each of four rulesets' workers has a connection of its own: the
# ruleset's queue is drained by as many workers, and omfwd opens a connection for each.
set -eu
udp=$1 sink=$2 workers=${RSYSLOG_THREADS:-$3}
directory=$(mktemp -d)
cat >"$directory/rsyslog.conf" <<CONF
global(workDirectory="$directory" maxMessageSize="64k" preserveFQDN="on")
module(load="imudp" threads="$workers" batchSize="32" timeRequery="8")
input(type="imudp" address="127.0.0.1" port="$udp" rcvbufSize="64m" ruleset="fanout")
template(name="rawlf" type="string" string="%rawmsg%\n")
ruleset(name="fanout" queue.type="fixedArray" queue.size="250000" queue.highWaterMark="200000" queue.lowWaterMark="150000"
        queue.discardMark="240000" queue.workerThreads="$workers" queue.dequeueBatchSize="512"
        queue.timeoutWorkerthreadShutdown="2000") {
    action(type="omfwd" target="127.0.0.1" port="$sink" protocol="tcp" template="rawlf" TCP_Framing="traditional"
           keepAlive="on" action.resumeRetryCount="-1" action.resumeInterval="5")
}
CONF
exec rsyslogd -n -f "$directory/rsyslog.conf" -i "$directory/pid"
