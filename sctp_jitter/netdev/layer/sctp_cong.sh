#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# SCTP's congestion control: sysctls, the socket option, and associations that are
# accepted, peeled off, restarted, reconfigured and authenticated, with each algorithm
# that there is.
#
#   ns1: 10.0.0.1, 10.0.1.1 (veth0) --- (veth0) 10.0.0.2, 10.0.1.2: ns2

DIR="$(dirname "$(readlink -f "$0")")"
# shellcheck source=../kselftest/ktap_helpers.sh
source "$DIR"/../kselftest/ktap_helpers.sh

ENDS=(setsockopt assoc_id accept peeloff restart asconf auth diag)
ns1=$(mktemp -u sctp1-XXXXXX)
ns2=$(mktemp -u sctp2-XXXXXX)
allowed=""

cleanup()
{
	[ -z "$allowed" ] || set_to 1 allowed_congestion_control "$allowed"
	ip netns del "$ns1" 2>/dev/null
	ip netns del "$ns2" 2>/dev/null
}

# The namespace of this script is 1, as init's: allowed_congestion_control is there.
get()
{
	case $1 in
	1) sysctl -n "net.sctp.$2" 2>/dev/null ;;
	*) ip netns exec "$1" sysctl -n "net.sctp.$2" 2>/dev/null ;;
	esac
}

set_to()
{
	case $1 in
	1) sysctl -qw "net.sctp.$2=$3" >/dev/null 2>&1 ;;
	*) ip netns exec "$1" sysctl -qw "net.sctp.$2=$3" >/dev/null 2>&1 ;;
	esac
}

has()
{
	[ "$(get "$1" "$2")" = "$3" ]
}

takes()
{
	set_to "$1" "$2" "$3" && has "$1" "$2" "$3"
}

# refuses NS NAME VALUE: and keeps what it had
refuses()
{
	local before

	before=$(get "$1" "$2")
	! set_to "$1" "$2" "$3" && has "$1" "$2" "$before"
}

of_one_namespace()
{
	takes "$ns1" congestion_control "$1" &&
		has "$ns2" congestion_control rfc9260 &&
		takes "$ns1" congestion_control rfc9260
}

allows_all()
{
	local available

	available=$(get 1 available_congestion_control)
	takes 1 allowed_congestion_control "$available" &&
		refuses 1 allowed_congestion_control "$available no_such_thing" &&
		takes 1 allowed_congestion_control rfc9260
}

timestamp_types()
{
	local type

	for type in 132 191 -1; do
		refuses "$ns1" timestamp_chunk "$type" || return 1
	done
	for type in 133 0 190; do
		takes "$ns1" timestamp_chunk "$type" || return 1
	done
	has "$ns2" timestamp_chunk 0
}

pair()
{
	ip link add veth0 netns "$ns1" type veth peer name veth0 netns "$ns2"
	local n ns

	for n in 1 2; do
		ns=ns$n
		ip -n "${!ns}" addr add "10.0.0.$n/24" dev veth0
		ip -n "${!ns}" addr add "10.0.1.$n/24" dev veth0
		ip -n "${!ns}" link set lo up
		ip -n "${!ns}" link set veth0 up
		for setting in addip_enable=1 addip_noauth_enable=1 auth_enable=1 \
			timestamp_chunk=190 rto_initial=200 rto_min=100; do
			ip netns exec "${!ns}" sysctl -qw "net.sctp.$setting"
		done
	done
}

ktap_print_header
modprobe -q sctp
modprobe -q sctp_diag
modprobe -q sctp_jsctp
if ! get 1 congestion_control >/dev/null; then
	ktap_skip_all "no SCTP with a choice of congestion control"
	exit "$KSFT_SKIP"
fi
trap cleanup EXIT
if ! ip netns add "$ns1" || ! ip netns add "$ns2"; then
	ktap_skip_all "no network namespaces"
	exit "$KSFT_SKIP"
fi
allowed=$(get 1 allowed_congestion_control)
read -ra names <<<"$(get 1 available_congestion_control)"
ktap_set_plan $((5 + ${#names[@]} * (1 + ${#ENDS[@]})))

ktap_test_result "a namespace starts with rfc9260" has "$ns1" congestion_control rfc9260
ktap_test_result "an algorithm that there is not is refused" \
	refuses "$ns1" congestion_control no_such_thing
ktap_test_result "all, or some, can be allowed for everybody" allows_all
ktap_test_result "the list of those allowed is not of each namespace" \
	refuses "$ns1" allowed_congestion_control rfc9260
ktap_test_result "TIMESTAMP chunks have a type that is not assigned, or none" timestamp_types

pair
for name in "${names[@]}"; do
	ktap_test_result "$name: sysctl, of one namespace" of_one_namespace "$name"
	for end in "${ENDS[@]}"; do
		ktap_test_result "$name: $end" "$DIR"/sctp_cong_ends "$end" "$name" "$ns1" "$ns2"
	done
done

ktap_finished
