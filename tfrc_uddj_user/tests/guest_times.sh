#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the lab: tfrc-send over a veth pair, 40 ms there and back, with the queueing
# discipline $1 where it leaves. Prints what the sender says, both ends' results
# and the queueing discipline's counters, a line each.
set -eu
bin=$2
ip link add near type veth peer name far
unshare -n sleep 1000 &
peer=$!
there() { nsenter -t $peer -n "$@"; }
sleep 0.1
ip link set far netns $peer
ip addr add 10.9.0.1/24 dev near
ip link set near up
there ip addr add 10.9.0.2/24 dev far
there ip link set far up
there tc qdisc add dev far root netem delay 40ms
tc qdisc add dev near root "$1"
there "$bin/tfrc-recv" --one-off --discard --quiet --json "$TMPDIR/recv.json" 5000 &
receiver=$!
sleep 0.5
"$bin/tfrc-send" --verbose --quiet --endless --duration 5 --max-rate 20M --json - 10.9.0.2 5000 2>&1
wait $receiver
cat "$TMPDIR/recv.json"
tc -s qdisc show dev near | tr '\n' ' '
echo
kill $peer
