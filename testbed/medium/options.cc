// SPDX-License-Identifier: GPL-2.0-only
#include "options.h"

#include <arpa/inet.h>
#include <getopt.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace
{

const char usage[] =
	"usage: labmedium --node NAMESPACE,DEVICE,X,Y[,IPV4] ... [OPTIONS]\n"
	"       labmedium --station AP_NAMESPACE,AP_DEVICE,NAMESPACE,DEVICE,X,Y ... [OPTIONS]\n"
	"\n"
	"A wireless medium (ns-3) between TAP devices, in each node's network namespace, by\n"
	"the clock that the kernel has: real, or virtual. Either ad hoc nodes of 802.11b\n"
	"(--node), or an access point at 0,0 and stations of 802.11n, ac or ax (--station).\n"
	"Runs until SIGTERM or SIGINT. The devices must exist (ip tuntap add dev NAME mode\n"
	"tap); an ad hoc node's has the address 00:00:00:00:00:NN, NN counting them from 01.\n"
	"The access point has a device for each station: frames keep their addresses, so\n"
	"these may be ports of a bridge, and one that is for all goes to each station alone.\n"
	"\n"
	"  --node NS,DEV,X,Y[,IPV4]  a namespace (as /proc/PID/ns/net), the TAP device in\n"
	"                            it, its place in m, its address (tells its own packets\n"
	"                            from those that it forwards)\n"
	"  --station APNS,APDEV,NS,DEV,X,Y  the access point's namespace and its TAP device\n"
	"                            for this station; the station's, and its place in m\n"
	"  --circle N,RADIUS,PERIOD  node or station N (from 1) moves on a circle around its\n"
	"                            place: m, s\n"
	"\n"
	"of ad hoc nodes:\n"
	"  --rate-mbps 1|2           of data frames (2)\n"
	"  --control-rate-mbps 1|2   of RTS and broadcast frames (1)\n"
	"  --rts-threshold-bytes N   longer frames use RTS (65535: none)\n"
	"  --short-retry-limit N     attempts without RTS (7)\n"
	"  --rts-retry-limit N       attempts of an RTS (7)\n"
	"  --long-retry-limit N      attempts after RTS (4)\n"
	"  --range-m M               how far frames are decoded (300)\n"
	"  --carrier-sense-m M       and sensed (550)\n"
	"  --capture-db DB           signal over interference to decode (10)\n"
	"  --eifs header|sensed      a station locks on what it can decode, and EIFS follows\n"
	"                            frames with errors whose header was decoded; or both\n"
	"                            with all that is sensed (header)\n"
	"\n"
	"of an access point:\n"
	"  --standard n|ac|ax        of all (n), in the 5 GHz band\n"
	"  --width-mhz N             of the channel: 20, 40, with ac and ax 80 (20)\n"
	"  --streams N               spatial streams and antennas, 1 to 4 (1)\n"
	"  --guard-interval-ns N     400 or 800; with ax 800, 1600 or 3200 (800)\n"
	"  --mcs N                   of all data (Minstrel-HT chooses)\n"
	"  --ampdu-bytes N           the longest A-MPDU (65535); 0: none\n"
	"  --lifetime-s S            after which an MPDU is given up (1)\n"
	"  --transmit-dbm DBM        of all nodes (20)\n"
	"\n"
	"of both:\n"
	"  --queue-pkts N            the interface queue (50); of an access point or station\n"
	"                            what the MAC takes if nothing holds its kernel back\n"
	"                            (1000)\n"
	"  --loss-exponent X         of the path loss (4; with an access point 3)\n"
	"  --seed N                  of backoffs (1)\n"
	"  --start-at-s T            when the medium's time is 0, by CLOCK_MONOTONIC (now);\n"
	"                            frames before that are lost\n"
	"  --duration-s S            of the samples (until the end)\n"
	"  --sample-ms MS            between samples (200)\n"
	"  --counters FILE           a CSV row for each node and sample; all add up from 0\n"
	"  --summary FILE            JSON: events, wake-ups, how late a frame came\n"
	"  --ready-fd N              write \"ready\\n\" there once frames can flow\n"
	"\n"
	"A frame of EtherType 0x88b5 that a node sends is answered at once with the node's\n"
	"counters (docs/medium.md), for its kernel or an agent to read. Frames of 0x88b6 tell\n"
	"the queueing discipline labgate of an access point's or a station's device how many\n"
	"bytes the MAC takes.\n"
	"Exit 0: done; 1: failed; 2: bad options.\n";

double number(const std::string &text, const std::string &what)
{
	char *end;

	errno = 0;
	double value = std::strtod(text.c_str(), &end);
	if (text.empty() || *end || errno || !std::isfinite(value))
		throw std::invalid_argument(what + ": " + text + " is no number");
	return value;
}

uint32_t count(const std::string &text, const std::string &what)
{
	double value = number(text, what);

	if (value < 0 || value > 4294967295.0 || value != std::floor(value))
		throw std::invalid_argument(what + ": " + text + " is no count");
	return static_cast<uint32_t>(value);
}

bool eifs_after_sensed(const std::string &text)
{
	if (text != "header" && text != "sensed")
		throw std::invalid_argument("--eifs: header or sensed, not " + text);
	return text == "sensed";
}

std::vector<std::string> split(const std::string &text)
{
	std::vector<std::string> parts;
	size_t begin = 0, comma;

	while ((comma = text.find(',', begin)) != std::string::npos) {
		parts.push_back(text.substr(begin, comma - begin));
		begin = comma + 1;
	}
	parts.push_back(text.substr(begin));
	return parts;
}

void add_node(Options &options, const std::string &text)
{
	std::vector<std::string> parts = split(text);
	Station station;

	if (parts.size() < 4 || parts.size() > 5)
		throw std::invalid_argument("--node " + text + ": NAMESPACE,DEVICE,X,Y[,IPV4]");
	station.place.x_m = number(parts[2], "--node");
	station.place.y_m = number(parts[3], "--node");
	if (parts.size() == 5) {
		in_addr address;

		if (inet_pton(AF_INET, parts[4].c_str(), &address) != 1)
			throw std::invalid_argument("--node: " + parts[4] + " is no IPv4 address");
		station.ipv4 = ntohl(address.s_addr);
	}
	options.medium.stations.push_back(station);
	options.taps.push_back({ parts[0], parts[1] });
}

void add_station(Options &options, const std::string &text)
{
	std::vector<std::string> parts = split(text);
	Place place;

	if (parts.size() != 6)
		throw std::invalid_argument("--station " + text +
					    ": AP_NAMESPACE,AP_DEVICE,NAMESPACE,DEVICE,X,Y");
	place.x_m = number(parts[4], "--station");
	place.y_m = number(parts[5], "--station");
	// the access point's devices come first
	auto at = options.taps.begin() + static_cast<std::ptrdiff_t>(options.ap.stations.size());
	options.taps.insert(at, { parts[0], parts[1] });
	options.taps.push_back({ parts[2], parts[3] });
	options.ap.stations.push_back(place);
}

void add_circle(Options &options, const std::string &text)
{
	std::vector<std::string> parts = split(text);

	if (parts.size() != 3)
		throw std::invalid_argument("--circle " + text + ": N,RADIUS,PERIOD");
	uint32_t node = count(parts[0], "--circle");
	size_t nodes = options.has_ap() ? options.ap.stations.size() : options.medium.stations.size();
	if (node < 1 || node > nodes)
		throw std::invalid_argument("--circle: there is no node " + parts[0] + " before it");
	Place &place = options.has_ap() ? options.ap.stations[node - 1] :
					  options.medium.stations[node - 1].place;
	place.circle_radius_m = number(parts[1], "--circle");
	place.circle_period_s = number(parts[2], "--circle");
}

enum Key {
	// of ad hoc nodes
	NODE = 1, RATE, CONTROL_RATE, SHORT_RETRY, RTS_RETRY, LONG_RETRY, RANGE, CARRIER_SENSE, CAPTURE,
	EIFS, AD_HOC_KEYS,
	// of an access point
	STATION, STANDARD, WIDTH, STREAMS, GUARD, MCS, AMPDU, LIFETIME, DBM, AP_KEYS,
	// of both
	CIRCLE, RTS_THRESHOLD, QUEUE, EXPONENT, SEED, START, DURATION, SAMPLE, COUNTERS_FILE, SUMMARY,
	READY_FD, HELP,
};

const option long_options[] = {
	{ "node", required_argument, nullptr, NODE },
	{ "station", required_argument, nullptr, STATION },
	{ "standard", required_argument, nullptr, STANDARD },
	{ "width-mhz", required_argument, nullptr, WIDTH },
	{ "streams", required_argument, nullptr, STREAMS },
	{ "guard-interval-ns", required_argument, nullptr, GUARD },
	{ "mcs", required_argument, nullptr, MCS },
	{ "ampdu-bytes", required_argument, nullptr, AMPDU },
	{ "lifetime-s", required_argument, nullptr, LIFETIME },
	{ "transmit-dbm", required_argument, nullptr, DBM },
	{ "circle", required_argument, nullptr, CIRCLE },
	{ "rate-mbps", required_argument, nullptr, RATE },
	{ "control-rate-mbps", required_argument, nullptr, CONTROL_RATE },
	{ "rts-threshold-bytes", required_argument, nullptr, RTS_THRESHOLD },
	{ "short-retry-limit", required_argument, nullptr, SHORT_RETRY },
	{ "rts-retry-limit", required_argument, nullptr, RTS_RETRY },
	{ "long-retry-limit", required_argument, nullptr, LONG_RETRY },
	{ "queue-pkts", required_argument, nullptr, QUEUE },
	{ "range-m", required_argument, nullptr, RANGE },
	{ "carrier-sense-m", required_argument, nullptr, CARRIER_SENSE },
	{ "loss-exponent", required_argument, nullptr, EXPONENT },
	{ "capture-db", required_argument, nullptr, CAPTURE },
	{ "eifs", required_argument, nullptr, EIFS },
	{ "seed", required_argument, nullptr, SEED },
	{ "start-at-s", required_argument, nullptr, START },
	{ "duration-s", required_argument, nullptr, DURATION },
	{ "sample-ms", required_argument, nullptr, SAMPLE },
	{ "counters", required_argument, nullptr, COUNTERS_FILE },
	{ "summary", required_argument, nullptr, SUMMARY },
	{ "ready-fd", required_argument, nullptr, READY_FD },
	{ "help", no_argument, nullptr, HELP },
	{},
};

void set(Options &options, int key, const std::string &name, const std::string &text)
{
	DsssConfig &medium = options.medium;
	ApConfig &ap = options.ap;

	switch (key) {
	case NODE: add_node(options, text); break;
	case STATION: add_station(options, text); break;
	case STANDARD: ap.standard = text; break;
	case WIDTH: ap.width_mhz = count(text, name); break;
	case STREAMS: ap.streams = count(text, name); break;
	case GUARD: ap.guard_interval_ns = count(text, name); break;
	case MCS: ap.mcs = static_cast<int>(count(text, name)); break;
	case AMPDU: ap.max_ampdu_bytes = count(text, name); break;
	case LIFETIME: ap.lifetime_s = number(text, name); break;
	case DBM: ap.transmit_dbm = number(text, name); break;
	case CIRCLE: add_circle(options, text); break;
	case RATE: medium.rate_mbps = number(text, name); break;
	case CONTROL_RATE: medium.control_rate_mbps = number(text, name); break;
	case RTS_THRESHOLD: medium.rts_threshold_bytes = ap.rts_threshold_bytes = count(text, name); break;
	case SHORT_RETRY: medium.short_retry_limit = count(text, name); break;
	case RTS_RETRY: medium.rts_retry_limit = count(text, name); break;
	case LONG_RETRY: medium.long_retry_limit = count(text, name); break;
	case QUEUE: medium.queue_pkts = ap.queue_pkts = count(text, name); break;
	case RANGE: medium.range_m = number(text, name); break;
	case CARRIER_SENSE: medium.carrier_sense_m = number(text, name); break;
	case EXPONENT: medium.loss_exponent = ap.loss_exponent = number(text, name); break;
	case CAPTURE: medium.capture_db = number(text, name); break;
	case EIFS: medium.eifs_after_sensed = eifs_after_sensed(text); break;
	case SEED: medium.seed = ap.seed = count(text, name); break;
	case START: options.start_ns = std::llround(number(text, name) * 1e9); break;
	case DURATION: options.duration_s = number(text, name); break;
	case SAMPLE: options.sample_ms = count(text, name); break;
	case COUNTERS_FILE: options.counters_file = text; break;
	case SUMMARY: options.summary_file = text; break;
	case READY_FD: options.ready_fd = static_cast<int>(count(text, name)); break;
	}
}

} // namespace

Options parse_options(int argc, char **argv)
{
	Options options;
	int key, index;
	std::string of_ad_hoc, of_ap; // an option that only one of them has

	opterr = 0;
	while ((key = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (key == '?')
			throw std::invalid_argument(std::string(argv[optind - 1]) +
						    ": no such option, or its value is missing");
		if (key == HELP) {
			std::fputs(usage, stdout);
			std::exit(0);
		}
		std::string name = std::string("--") + long_options[index].name;

		(key < AD_HOC_KEYS ? of_ad_hoc : key < AP_KEYS ? of_ap : name) = name;
		set(options, key, name, optarg);
	}
	if (optind < argc)
		throw std::invalid_argument(std::string(argv[optind]) + ": no such argument");
	if (!of_ad_hoc.empty() && !of_ap.empty())
		throw std::invalid_argument(of_ad_hoc + " is of ad hoc nodes, " + of_ap +
					    " of an access point");
	if (options.taps.empty())
		throw std::invalid_argument("no --node and no --station (--help shows all options)");
	if (options.sample_ms < 1)
		throw std::invalid_argument("--sample-ms: 1 at least");
	return options;
}
