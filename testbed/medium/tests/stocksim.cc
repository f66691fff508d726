// SPDX-License-Identifier: GPL-2.0-only
/*
 * stocksim - UDP over a chain in ns-3 as it is, by its own helpers, with no code of ours: what the
 * medium of mediumsim is held against. Its ranges are those of docs/medium.md, by ns-3's own means
 * (RxSensitivity, CcaEdThreshold and ThresholdPreambleDetectionModel); what ns-3 does not know, which
 * interference a frame survives once it is locked on, is left to its formula.
 *
 *   stocksim --hops=N [--rts=true] [--seconds=S] [--run=K]
 *
 * Prints how many kb/s of UDP payload arrive at the end of the chain, after the first second. Written
 * for ns-3 3.37 (Debian 12), goes with 3.44 as well.
 */
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/mobility-module.h>
#include <ns3/network-module.h>
#include <ns3/propagation-module.h>
#include <ns3/wifi-module.h>

#include <cmath>
#include <cstdio>

using namespace ns3;

namespace
{

constexpr double SPACING_M = 250, RANGE_M = 300, SENSE_M = 550, EXPONENT = 4;
constexpr double TRANSMIT_DBM = 20, DECODABLE_DBM = -60, MARGIN_DB = 0.01, CAPTURE_DB = 10;
constexpr uint32_t PAYLOAD_BYTES = 1000;
constexpr uint64_t OFFERED_BPS = 3'000'000;

struct Options {
	uint32_t hops = 1, seconds = 20, run = 1;
	bool rts = false;
};

void set_defaults(const Options &options)
{
	RngSeedManager::SetRun(options.run);
	Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
			   UintegerValue(options.rts ? 0 : 65535));
	Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("50p")));
	Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Days(365)));
	Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(365)));
}

NetDeviceContainer install_wifi(const NodeContainer &nodes)
{
	double loss_db = TRANSMIT_DBM - DECODABLE_DBM - 10 * EXPONENT * std::log10(RANGE_M);
	double sensed_dbm =
		DECODABLE_DBM - MARGIN_DB - 10 * EXPONENT * std::log10(SENSE_M / RANGE_M);
	YansWifiChannelHelper channel;
	YansWifiPhyHelper phy;
	WifiMacHelper mac;
	WifiHelper wifi;

	channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
	channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent",
				   DoubleValue(EXPONENT), "ReferenceDistance", DoubleValue(1),
				   "ReferenceLoss", DoubleValue(loss_db));
	phy.SetChannel(channel.Create());
	phy.Set("TxPowerStart", DoubleValue(TRANSMIT_DBM));
	phy.Set("TxPowerEnd", DoubleValue(TRANSMIT_DBM));
	phy.Set("RxSensitivity", DoubleValue(sensed_dbm - 10 * std::log10(22.0 / 20)));
	phy.Set("CcaEdThreshold", DoubleValue(sensed_dbm));
	phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "Threshold",
				      DoubleValue(CAPTURE_DB), "MinimumRssi",
				      DoubleValue(DECODABLE_DBM - MARGIN_DB));
	mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
	wifi.SetStandard(WIFI_STANDARD_80211b);
	wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode",
				     StringValue("DsssRate2Mbps"), "ControlMode",
				     StringValue("DsssRate1Mbps"), "NonUnicastMode",
				     StringValue("DsssRate1Mbps"));
	return wifi.Install(phy, mac, nodes);
}

void install_internet(const NodeContainer &nodes, const NetDeviceContainer &devices)
{
	Ipv4StaticRoutingHelper routing;
	InternetStackHelper stack;
	Ipv4AddressHelper addresses("10.9.0.0", "255.255.255.0");

	stack.SetRoutingHelper(routing);
	stack.Install(nodes);
	Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
	for (uint32_t i = 0; i < nodes.GetN(); i++) {
		auto ip = nodes.Get(i)->GetObject<Ipv4L3Protocol>();
		auto at = ip->GetInterface(ip->GetInterfaceForDevice(devices.Get(i)));

		for (uint32_t j = 0; j < nodes.GetN(); j++) {
			auto address = interfaces.GetAddress(j);

			if (j + 1 < i || j > i + 1)
				routing.GetStaticRouting(ip)->AddHostRouteTo(
					address, interfaces.GetAddress(j > i ? i + 1 : i - 1), 1);
			if (j == i)
				continue;
			auto entry = at->GetArpCache()->Add(address);
			entry->SetMacAddress(devices.Get(j)->GetAddress());
			entry->MarkPermanent();
		}
	}
}

double udp_kbps(const Options &options)
{
	NodeContainer nodes;
	MobilityHelper mobility;
	Ipv4Address last;

	set_defaults(options);
	nodes.Create(options.hops + 1);
	mobility.SetPositionAllocator("ns3::GridPositionAllocator", "DeltaX", DoubleValue(SPACING_M),
				      "GridWidth", UintegerValue(options.hops + 1));
	mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
	mobility.Install(nodes);
	install_internet(nodes, install_wifi(nodes));
	last = nodes.Get(options.hops)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();

	InetSocketAddress to(last, 9);
	PacketSinkHelper sinks("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
	OnOffHelper source("ns3::UdpSocketFactory", to);
	auto sink = DynamicCast<PacketSink>(sinks.Install(nodes.Get(options.hops)).Get(0));
	uint64_t before = 0;

	source.SetConstantRate(DataRate(OFFERED_BPS), PAYLOAD_BYTES);
	source.Install(nodes.Get(0));
	Simulator::Schedule(Seconds(1), [&]() { before = sink->GetTotalRx(); });
	Simulator::Stop(Seconds(1 + options.seconds));
	Simulator::Run();
	double kbps = (sink->GetTotalRx() - before) * 8e-3 / options.seconds;
	Simulator::Destroy();
	return kbps;
}

} // namespace

int main(int argc, char **argv)
{
	CommandLine command(__FILE__);
	Options options;

	command.AddValue("hops", "hops of the chain", options.hops);
	command.AddValue("rts", "RTS/CTS before each frame", options.rts);
	command.AddValue("seconds", "time, after the first second", options.seconds);
	command.AddValue("run", "number of the random numbers' run", options.run);
	command.Parse(argc, argv);
	std::printf("%.1f\n", udp_kbps(options));
	return 0;
}
