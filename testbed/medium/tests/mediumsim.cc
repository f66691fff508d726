// SPDX-License-Identifier: GPL-2.0-only
/*
 * mediumsim - labmedium's medium without kernels: ns-3 makes the traffic and owns
 * time. What theory says of the MAC is held against this, and what the lab
 * measures with real stacks against its UDP.
 *
 *   mediumsim [--saturate FROM,TO,BYTES] ... [--udp FROM,TO,BYTES,MBPS] ...
 *             --seconds S [--lag] [labmedium's options]
 *
 * --saturate: FROM always has a packet of BYTES (from the IP header on) for TO, one
 * hop away; with an access point, which is node 1, as many as it may be given. --udp:
 * datagrams of BYTES payload go at MBPS over a chain, where nodes are each other's
 * neighbours in the order of the --node options. Prints one JSON object: how each
 * node's counters grew after the first second, for S seconds, the datagrams that
 * arrived meanwhile, and the bytes (from the IP header on) that came out at each port.
 */
#include "dsss.h"
#include "lab_simulator.h"
#include "options.h"
#include "wifi_ap.h"

#include <ns3/arp-cache.h>
#include <ns3/global-value.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-interface.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/node-container.h>
#include <ns3/on-off-helper.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/simulator.h>
#include <ns3/udp-socket-factory.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>

using namespace ns3;

namespace
{

constexpr int64_t WARM_UP_NS = 1'000'000'000;
constexpr uint16_t PORT = 9;
constexpr uint16_t ETHERTYPE_IPV4 = 0x0800;
constexpr uint64_t BACKLOG_PKTS = 3;
constexpr size_t QUEUE_PKTS = COUNTERS - 1; // the one counter that does not add up
constexpr size_t RETRY_DROPS = COUNTERS - 4;

struct Load {
	size_t from = 0, to = 0;
	uint32_t bytes = 0;
	double mbps = 0;
};

struct Command {
	std::vector<Load> saturated, udp;
	double seconds = 10;
	bool lags = false;
	std::vector<char *> medium; // options that are labmedium's
};

Load parse_load(const char *text, bool has_rate)
{
	Load load;
	int used = 0;
	int values = has_rate ? std::sscanf(text, "%zu,%zu,%u,%lf%n", &load.from, &load.to,
					    &load.bytes, &load.mbps, &used) :
				std::sscanf(text, "%zu,%zu,%u%n", &load.from, &load.to,
					    &load.bytes, &used);

	if (values != 3 + has_rate || text[used] || !load.from || !load.to)
		throw std::invalid_argument(std::string("no load: ") + text);
	load.from--;
	load.to--;
	return load;
}

Command parse_command(int argc, char **argv)
{
	Command command;

	command.medium.push_back(argv[0]);
	for (int i = 1; i < argc; i++) {
		std::string option = argv[i];

		if (option == "--lag") {
			command.lags = true;
			continue;
		}
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (option == "--saturate")
			command.saturated.push_back(parse_load(value, false));
		else if (option == "--udp")
			command.udp.push_back(parse_load(value, true));
		else if (option == "--seconds")
			command.seconds = std::stod(value);
		else {
			command.medium.push_back(argv[i]);
			continue;
		}
		i++;
	}
	return command;
}

std::unique_ptr<Medium> make_medium(const Options &options, LabSimulator &simulator,
				    Medium::Receiver receiver)
{
	if (options.has_ap())
		return std::make_unique<ApMedium>(options.ap, simulator, receiver);
	return std::make_unique<DsssMedium>(options.medium, receiver);
}

/* The port through which LOAD goes in: with an access point (node 0) and n stations the first n are
 * its own. */
size_t port_of(const Medium &medium, const Load &load)
{
	if (medium.node_of(medium.nodes() - 1) == medium.nodes() - 1)
		return load.from;
	return load.from ? medium.nodes() - 1 + load.from - 1 : load.to - 1;
}

/* Run as labmedium does when no node sends any more: from one instant at which a frame could be
 * received to the next, with long and short frames in the queues. Print how many instants there
 * were, and by how much frames had been received before the one waited for: never, or they would
 * be late. */
void lag(const Command &command, const Options &options, LabSimulator &simulator)
{
	constexpr int QUEUED = 40;
	constexpr uint32_t SHORT_BYTES = 60;
	int64_t waited_for_ns = 0, late_max_ns = 0;
	uint64_t wakeups = 0, received = 0;
	auto medium = make_medium(options, simulator, [&](size_t, const Packet &, uint16_t,
							  Mac48Address, Mac48Address) {
		late_max_ns = std::max(late_max_ns,
				       waited_for_ns - Simulator::Now().GetNanoSeconds());
		received++;
	});
	int64_t begin_ns = medium->lead_ns();
	int64_t end_ns = begin_ns + static_cast<int64_t>(command.seconds * 1e9);

	simulator.run_until(begin_ns);
	for (const Load &load : command.saturated) {
		for (int i = 0; i < QUEUED; i++)
			medium->send(port_of(*medium, load),
				     Create<Packet>(i % 3 ? load.bytes : SHORT_BYTES), ETHERTYPE_IPV4,
				     Medium::address(load.from), Medium::address(load.to));
	}
	simulator.run_until(begin_ns);
	while ((waited_for_ns = medium->next_delivery_ns(simulator.next_event_ns())) < end_ns) {
		simulator.run_until(waited_for_ns);
		wakeups++;
	}
	uint64_t given_up = 0;
	for (size_t node = 0; node < medium->nodes(); node++)
		given_up += medium->counters(node)[RETRY_DROPS];
	std::printf("{\"wakeups\": %lu, \"received\": %lu, \"given_up\": %lu, \"late_max_ns\": %ld}\n",
		    wakeups, received, given_up, late_max_ns);
}

/* Keep something in the queue; far more often than a packet takes to leave. */
void refill(Medium &medium, Load load)
{
	size_t port = port_of(medium, load);
	bool told = medium.room_bytes(port) >= 0;
	uint64_t queued = medium.counters(load.from)[QUEUE_PKTS];

	for (; told ? medium.room_bytes(port) > 0 : queued < BACKLOG_PKTS; queued++)
		medium.send(port, Create<Packet>(load.bytes), ETHERTYPE_IPV4,
			    Medium::address(load.from), Medium::address(load.to));
	Simulator::Schedule(MicroSeconds(500), &refill, std::ref(medium), load);
}

Ipv4Address address_of(size_t node)
{
	return Ipv4Address(0x0a090001 + static_cast<uint32_t>(node)); // 10.9.0.1 and on
}

/* Give each node IP, static routes along the chain, and its neighbours' MAC addresses. */
void install_internet(DsssMedium &medium)
{
	Ipv4StaticRoutingHelper routing;
	InternetStackHelper stack;
	NetDeviceContainer devices;
	NodeContainer nodes;
	Ipv4AddressHelper addresses("10.9.0.0", "255.255.255.0");
	size_t n = medium.nodes();

	for (size_t i = 0; i < n; i++) {
		devices.Add(medium.device(i));
		nodes.Add(medium.device(i)->GetNode());
	}
	stack.SetRoutingHelper(routing);
	stack.Install(nodes);
	addresses.Assign(devices);
	for (size_t i = 0; i < n; i++) {
		auto ip = nodes.Get(i)->GetObject<Ipv4L3Protocol>();
		auto interface = ip->GetInterface(ip->GetInterfaceForDevice(devices.Get(i)));
		auto table = routing.GetStaticRouting(ip);

		for (size_t j = 0; j < n; j++) {
			if (j == i)
				continue;
			if (j + 1 < i || j > i + 1)
				table->AddHostRouteTo(address_of(j), address_of(j > i ? i + 1 : i - 1), 1);
			auto entry = interface->GetArpCache()->Add(address_of(j));
			entry->SetMacAddress(Medium::address(j));
			entry->MarkPermanent();
		}
	}
}

Ptr<PacketSink> start_udp(DsssMedium &medium, const Load &load, uint16_t port)
{
	InetSocketAddress to(address_of(load.to), port);
	PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
	OnOffHelper source("ns3::UdpSocketFactory", to);

	source.SetConstantRate(DataRate(static_cast<uint64_t>(load.mbps * 1e6)), load.bytes);
	source.Install(medium.device(load.from)->GetNode());
	return DynamicCast<PacketSink>(sink.Install(medium.device(load.to)->GetNode()).Get(0));
}

std::vector<CounterNumbers> read_all(Medium &medium)
{
	std::vector<CounterNumbers> all;

	for (size_t i = 0; i < medium.nodes(); i++)
		all.push_back(medium.counters(i));
	return all;
}

void print(const std::vector<CounterNumbers> &before, const std::vector<CounterNumbers> &after,
	   double seconds, const std::vector<uint64_t> &datagram_bytes,
	   const std::vector<uint64_t> &port_bytes)
{
	const char *node_comma = "";

	std::printf("{\"seconds\": %.3f, \"udp_bytes\": [", seconds);
	for (size_t i = 0; i < datagram_bytes.size(); i++)
		std::printf("%s%lu", i ? ", " : "", datagram_bytes[i]);
	std::printf("], \"port_bytes\": [");
	for (size_t i = 0; i < port_bytes.size(); i++)
		std::printf("%s%lu", i ? ", " : "", port_bytes[i]);
	std::printf("], \"nodes\": [");
	for (size_t i = 0; i < before.size(); i++) {
		std::printf("%s{", node_comma);
		for (size_t k = 0; k < COUNTERS; k++)
			std::printf("%s\"%s\": %lu", k ? ", " : "", counter_names[k],
				    k < QUEUE_PKTS ? after[i][k] - before[i][k] : after[i][k]);
		std::printf("}");
		node_comma = ", ";
	}
	std::printf("]}\n");
}

void simulate(Command &command)
{
	auto simulator = LabSimulator::install();
	Options options = parse_options(static_cast<int>(command.medium.size()), command.medium.data());
	if (command.lags) {
		lag(command, options, *simulator);
		return;
	}
	std::vector<uint64_t> port_bytes(options.taps.size());
	auto medium = make_medium(options, *simulator, [&](size_t port, const Packet &packet, uint16_t,
							   Mac48Address, Mac48Address) {
		port_bytes[port] += packet.GetSize();
	});
	int64_t begin_ns = medium->lead_ns() + WARM_UP_NS;
	std::vector<Ptr<PacketSink>> sinks;
	std::vector<uint64_t> bytes;

	for (const Load &load : command.saturated)
		refill(*medium, load);
	if (!command.udp.empty()) {
		auto chain = dynamic_cast<DsssMedium *>(medium.get());

		if (!chain)
			throw std::invalid_argument("--udp is of a chain");
		install_internet(*chain);
		for (const Load &load : command.udp)
			sinks.push_back(start_udp(*chain, load, static_cast<uint16_t>(PORT + sinks.size())));
	}
	simulator->run_until(begin_ns);
	auto before = read_all(*medium);
	for (auto &sink : sinks)
		bytes.push_back(sink->GetTotalRx());
	port_bytes.assign(port_bytes.size(), 0);
	simulator->run_until(begin_ns + static_cast<int64_t>(command.seconds * 1e9));
	for (size_t i = 0; i < sinks.size(); i++)
		bytes[i] = sinks[i]->GetTotalRx() - bytes[i];
	print(before, read_all(*medium), command.seconds, bytes, port_bytes);
}

} // namespace

int main(int argc, char **argv)
{
	try {
		Command command = parse_command(argc, argv);

		simulate(command);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "mediumsim: %s\n", error.what());
		return 2;
	}
	return 0;
}
