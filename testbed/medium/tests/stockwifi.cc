// SPDX-License-Identifier: GPL-2.0-only
/*
 * stockwifi - UDP between an access point and its stations in ns-3 as it is, by its own helpers, with
 * no code of ours: what the access point of mediumsim is held against.
 *
 *   stockwifi --standard=n [--stations=N] [--up=true] [--width=MHZ] [--distance=M] [--seconds=S]
 *             [--run=K]
 *
 * Every station gets (or sends) more than the channel carries, after a few packets each at a time of
 * its own: agreements on block acknowledgements that are asked for in a crowd fail for long in ns-3. Prints how many Mb/s of UDP payload
 * arrive at, or come from, each station, after the first seconds. Written for ns-3 3.37 (Debian 12).
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
#include <vector>

using namespace ns3;

namespace
{

constexpr double EXPONENT = 3, REFERENCE_DB = 46.6777; // of 1 m, at 5.15 GHz
constexpr uint32_t PAYLOAD_BYTES = 1472;
constexpr double WARM_UP_S = 2.5;
constexpr uint32_t FIRST_PKTS = 5;

struct Options {
	std::string standard = "n";
	uint32_t stations = 1, width_mhz = 20, seconds = 5, run = 1;
	double distance_m = 5, offered_mbps = 300;
	bool up = false;
};

WifiStandard standard_of(const std::string &name)
{
	if (name == "ac")
		return WIFI_STANDARD_80211ac;
	return name == "ax" ? WIFI_STANDARD_80211ax : WIFI_STANDARD_80211n;
}

void set_defaults(const Options &options)
{
	RngSeedManager::SetRun(options.run);
	Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("200p")));
	Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1)));
	Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(365)));
	Config::SetDefault("ns3::StaWifiMac::MaxMissedBeacons", UintegerValue(1000000));
	Config::SetDefault("ns3::HeConfiguration::GuardInterval", TimeValue(NanoSeconds(800)));
}

/* The access point first. */
NetDeviceContainer install_wifi(const NodeContainer &nodes, const Options &options)
{
	YansWifiChannelHelper channel;
	YansWifiPhyHelper phy;
	WifiMacHelper mac;
	WifiHelper wifi;
	Ssid ssid("stock");
	NetDeviceContainer devices;

	channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
	channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent",
				   DoubleValue(EXPONENT), "ReferenceDistance", DoubleValue(1),
				   "ReferenceLoss", DoubleValue(REFERENCE_DB));
	phy.SetChannel(channel.Create());
	phy.Set("TxPowerStart", DoubleValue(20));
	phy.Set("TxPowerEnd", DoubleValue(20));
	phy.Set("ChannelSettings",
		StringValue("{0, " + std::to_string(options.width_mhz) + ", BAND_5GHZ, 0}"));
	wifi.SetStandard(standard_of(options.standard));
	wifi.SetRemoteStationManager("ns3::MinstrelHtWifiManager");
	mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(65535));
	devices.Add(wifi.Install(phy, mac, nodes.Get(0)));
	mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize",
		    UintegerValue(65535));
	for (uint32_t i = 1; i < nodes.GetN(); i++)
		devices.Add(wifi.Install(phy, mac, nodes.Get(i)));
	return devices;
}

/* On a circle around the access point. */
void install_places(const NodeContainer &nodes, double distance_m)
{
	auto places = CreateObject<ListPositionAllocator>();
	MobilityHelper mobility;

	places->Add(Vector(0, 0, 0));
	for (uint32_t i = 1; i < nodes.GetN(); i++) {
		double angle = 2 * M_PI * (i - 1) / (nodes.GetN() - 1);

		places->Add(Vector(distance_m * std::cos(angle), distance_m * std::sin(angle), 0));
	}
	mobility.SetPositionAllocator(places);
	mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
	mobility.Install(nodes);
}

std::vector<double> udp_mbps(const Options &options)
{
	NodeContainer nodes;
	InternetStackHelper stack;
	Ipv4AddressHelper addresses("10.9.0.0", "255.255.255.0");
	std::vector<Ptr<PacketSink>> sinks;
	std::vector<double> mbps;

	set_defaults(options);
	nodes.Create(options.stations + 1);
	install_places(nodes, options.distance_m);
	NetDeviceContainer devices = install_wifi(nodes, options);
	stack.Install(nodes);
	Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
	double each_mbps = options.offered_mbps / options.stations;
	for (uint32_t i = 1; i <= options.stations; i++) {
		uint32_t from = options.up ? i : 0, to = options.up ? 0 : i;
		auto port = static_cast<uint16_t>(9 + i);
		PacketSinkHelper sink("ns3::UdpSocketFactory",
				      InetSocketAddress(Ipv4Address::GetAny(), port));
		OnOffHelper source("ns3::UdpSocketFactory",
				   InetSocketAddress(interfaces.GetAddress(to), port));

		sinks.push_back(DynamicCast<PacketSink>(sink.Install(nodes.Get(to)).Get(0)));
		source.SetConstantRate(DataRate(static_cast<uint64_t>(each_mbps * 1e6)),
				       PAYLOAD_BYTES);
		source.Install(nodes.Get(from)).Start(Seconds(1.5 + 0.001 * i));
		source.SetAttribute("MaxBytes", UintegerValue(FIRST_PKTS * PAYLOAD_BYTES));
		source.Install(nodes.Get(from)).Start(Seconds(0.5 + 0.03 * i));
	}
	mbps.resize(options.stations);
	Simulator::Schedule(Seconds(WARM_UP_S), [&]() {
		for (size_t i = 0; i < sinks.size(); i++)
			mbps[i] = -8e-6 * sinks[i]->GetTotalRx();
	});
	Simulator::Stop(Seconds(WARM_UP_S + options.seconds));
	Simulator::Run();
	for (size_t i = 0; i < sinks.size(); i++)
		mbps[i] = (mbps[i] + 8e-6 * sinks[i]->GetTotalRx()) / options.seconds;
	Simulator::Destroy();
	return mbps;
}

} // namespace

int main(int argc, char **argv)
{
	CommandLine command(__FILE__);
	Options options;

	command.AddValue("standard", "n, ac or ax", options.standard);
	command.AddValue("stations", "how many", options.stations);
	command.AddValue("up", "from the stations", options.up);
	command.AddValue("width", "of the channel, MHz", options.width_mhz);
	command.AddValue("distance", "of each station, m", options.distance_m);
	command.AddValue("offered", "Mb/s together", options.offered_mbps);
	command.AddValue("seconds", "time, after the first", options.seconds);
	command.AddValue("run", "number of the random numbers' run", options.run);
	command.Parse(argc, argv);
	for (double mbps : udp_mbps(options))
		std::printf("%.2f ", mbps);
	std::printf("\n");
	return 0;
}
