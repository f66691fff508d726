// SPDX-License-Identifier: GPL-2.0-only
/*
 * ns3hops - one flow of ns-3's own TCP over a row of hops, as the lab's netem has them: what the
 * kernel's algorithms are held against (veno-lab ns3).
 *
 *   ns3hops --algorithm=TcpVeno --there=RATE:DELAY:LOSS:QUEUE,... --back=... [--seconds=S]
 *
 * A hop has a rate (Mb/s; 0: none), a delay (ms), a loss (percent of packets, at random) and a queue
 * (packets, with the one that is being sent; 0: no end). --back has the hops in the order in which
 * acknowledgements meet them. Prints the goodput after the warm-up in Mb/s. Written for ns-3 3.37
 * (Debian 12).
 *
 * TCP is as ns-3 has it by default (SACK, timestamps, PRR, ten packets at first, a timeout of 1 s at
 * least), but for windows that never are the limit, and Westwood+ as in the kernel. Other values:
 * --ns3::TcpSocketBase::MinRto=200ms, as with any program of ns-3.
 */
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <cstdio>
#include <sstream>

using namespace ns3;

namespace
{

constexpr double NO_RATE_MBPS = 100'000;
constexpr uint32_t WINDOW_BYTES = 16 << 20;
constexpr uint32_t NO_LIMIT_PKTS = 1'000'000;
constexpr uint32_t HEADERS_BYTES = 20 + 32; // IPv4 and TCP with timestamps
constexpr uint32_t PPP_BYTES = 2, ETHERNET_BYTES = 14;
constexpr uint16_t PORT = 9;
const Ipv4Address SENDER("10.0.0.1"), RECEIVER("10.2.0.1");

struct Hop {
	double rate_mbps = 0, delay_ms = 0, loss_pct = 0;
	uint32_t queue_pkts = 0;
};

struct Options {
	std::string algorithm = "TcpLinuxReno", there, back;
	double seconds = 10, warmup = 0, start = 0;
	uint32_t mss = 1448, run = 1;
};

std::vector<Hop> parse_hops(const std::string &text)
{
	std::vector<Hop> hops;
	std::istringstream list(text);
	std::string item;

	while (std::getline(list, item, ',')) {
		Hop hop;
		char rest;

		if (std::sscanf(item.c_str(), "%lf:%lf:%lf:%u%c", &hop.rate_mbps, &hop.delay_ms,
				&hop.loss_pct, &hop.queue_pkts, &rest) != 4)
			NS_FATAL_ERROR("'" << item << "' is no hop: RATE:DELAY:LOSS:QUEUE");
		hops.push_back(hop);
	}
	return hops;
}

/* What the command line says of ns-3's attributes comes after it. */
void set_defaults()
{
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(WINDOW_BYTES));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(WINDOW_BYTES));
	Config::SetDefault("ns3::TcpWestwood::ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));
}

/* What DEVICE sends, and what its PEER does not get. A full frame takes as long as in the lab. */
void set_hop(Ptr<NetDevice> device, Ptr<NetDevice> peer, const Hop &hop, uint32_t mss_bytes)
{
	uint32_t payload = mss_bytes + HEADERS_BYTES;
	double here = double(payload + PPP_BYTES) / (payload + ETHERNET_BYTES);
	auto link = DynamicCast<PointToPointNetDevice>(device);
	// netem's limit counts the packet that is being sent
	uint32_t pkts = hop.queue_pkts ? std::max(hop.queue_pkts, 2U) - 1 : NO_LIMIT_PKTS;
	auto losses = CreateObject<RateErrorModel>();

	link->SetDataRate(
		DataRate(1e6 * (hop.rate_mbps ? hop.rate_mbps * here : NO_RATE_MBPS)));
	link->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, pkts));
	losses->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
	losses->SetRate(hop.loss_pct / 100);
	DynamicCast<PointToPointNetDevice>(peer)->SetReceiveErrorModel(losses);
}

/*
 * ns-3's line between two nodes has one delay, so each way of a hop has its own line: 10.0.I.0/24 and
 * 10.1.I.0/24. The sender is known by its first line, so acknowledgements need a way of their own to
 * that; the receiver has an address that no line has, on its loopback.
 */
void build_path(const NodeContainer &nodes, const std::vector<Hop> &there,
		const std::vector<Hop> &back, uint32_t mss_bytes)
{
	InternetStackHelper stack;
	Ipv4StaticRoutingHelper routing;
	TrafficControlHelper control;

	stack.SetRoutingHelper(routing);
	stack.Install(nodes);
	for (size_t i = 0; i < there.size(); i++) {
		for (bool forward : {true, false}) {
			const Hop &hop = forward ? there[i] : back[back.size() - 1 - i];
			auto from = nodes.Get(forward ? i : i + 1), to = nodes.Get(forward ? i + 1 : i);
			std::string net = (forward ? "10.0." : "10.1.") + std::to_string(i) + ".0";
			Ipv4AddressHelper addresses(net.c_str(), "255.255.255.0");
			PointToPointHelper line;

			line.SetChannelAttribute("Delay", TimeValue(Seconds(hop.delay_ms / 1e3)));
			auto devices = line.Install(from, to);
			auto interfaces = addresses.Assign(devices);
			control.Uninstall(devices); // it would hold packets back, not drop them
			set_hop(devices.Get(0), devices.Get(1), hop, mss_bytes);
			routing.GetStaticRouting(from->GetObject<Ipv4>())
				->AddHostRouteTo(forward ? RECEIVER : SENDER, interfaces.GetAddress(1),
						 interfaces.Get(0).second);
		}
	}
	nodes.Get(there.size())
		->GetObject<Ipv4>()
		->AddAddress(0, Ipv4InterfaceAddress(RECEIVER, "255.255.255.255"));
}

double goodput_mbps(const Options &options)
{
	auto there = parse_hops(options.there), back = parse_hops(options.back);
	NodeContainer nodes;
	uint64_t before = 0;

	if (there.empty() || there.size() != back.size())
		NS_FATAL_ERROR("--there and --back need as many hops each, and one at least");
	RngSeedManager::SetRun(options.run);
	Config::SetDefault("ns3::TcpL4Protocol::SocketType",
			   TypeIdValue(TypeId::LookupByName("ns3::" + options.algorithm)));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(options.mss));
	nodes.Create(there.size() + 1);
	build_path(nodes, there, back, options.mss);

	PacketSinkHelper sinks("ns3::TcpSocketFactory",
			       InetSocketAddress(Ipv4Address::GetAny(), PORT));
	auto sink = DynamicCast<PacketSink>(sinks.Install(nodes.Get(there.size())).Get(0));
	BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(RECEIVER, PORT));
	source.Install(nodes.Get(0)).Start(Seconds(options.start));
	Simulator::Schedule(Seconds(options.warmup), [&]() { before = sink->GetTotalRx(); });
	Simulator::Stop(Seconds(options.seconds));
	Simulator::Run();
	double mbit = (sink->GetTotalRx() - before) * 8e-6;
	Simulator::Destroy();
	return mbit / (options.seconds - std::max(options.warmup, options.start));
}

} // namespace

int main(int argc, char **argv)
{
	CommandLine command(__FILE__);
	Options options;

	command.AddValue("algorithm", "ns-3's name of it", options.algorithm);
	command.AddValue("there", "hops of data, RATE:DELAY:LOSS:QUEUE each", options.there);
	command.AddValue("back", "hops of acknowledgements", options.back);
	command.AddValue("seconds", "when it ends", options.seconds);
	command.AddValue("warmup", "what comes before is not counted (s)", options.warmup);
	command.AddValue("start", "when the flow starts (s)", options.start);
	command.AddValue("mss", "payload of a full segment (bytes)", options.mss);
	command.AddValue("run", "number of the random numbers' run", options.run);
	set_defaults();
	command.Parse(argc, argv);
	std::printf("%.6f\n", goodput_mbps(options));
	return 0;
}
