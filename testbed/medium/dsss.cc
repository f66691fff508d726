// SPDX-License-Identifier: GPL-2.0-only
#include "dsss.h"

#include <ns3/boolean.h>
#include <ns3/channel-access-manager.h>
#include <ns3/config.h>
#include <ns3/double.h>
#include <ns3/node-container.h>
#include <ns3/node.h>
#include <ns3/queue-size.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>
#include <ns3/wifi-helper.h>
#include <ns3/wifi-mac-queue.h>
#include <ns3/wifi-psdu.h>
#include <ns3/yans-wifi-helper.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace ns3;

namespace
{

constexpr double TRANSMIT_DBM = 20;
/* What arrives from as far as frames are decoded. So far above thermal noise (-93 dBm) that the
 * thresholds alone decide. */
constexpr double DECODABLE_DBM = -60;
constexpr double MARGIN_DB = 0.01; // a node exactly at a range is within it
constexpr uint32_t DATA_OVERHEAD_BYTES = 24 + 8 + 4; // MAC and LLC headers, FCS
constexpr int64_t STREAMS_PER_NODE = 100; // ns-3's random variables of a device, at most

std::string dsss_mode(double rate_mbps, const char *what)
{
	if (rate_mbps == 1)
		return "DsssRate1Mbps";
	if (rate_mbps == 2)
		return "DsssRate2Mbps";
	throw std::invalid_argument(std::string(what) + ": 1 or 2 Mb/s");
}

void require(bool holds, const char *what)
{
	if (!holds)
		throw std::invalid_argument(what);
}

void check(const DsssConfig &c)
{
	require(!c.stations.empty(), "no node");
	require(c.stations.size() <= 254, "more than 254 nodes");
	require(c.range_m > 1 && c.range_m <= 1e5, "range: above 1 m, at most 100 km");
	require(c.carrier_sense_m >= c.range_m && c.carrier_sense_m <= 1e5,
		"carrier sense: at least the range, at most 100 km");
	require(c.loss_exponent >= 2 && c.loss_exponent <= 6, "loss exponent: 2 to 6");
	// below, ns-3's DSSS formula would lose frames that the threshold lets pass
	require(c.capture_db >= 6 && c.capture_db <= 30, "capture threshold: 6 to 30 dB");
	require(c.short_retry_limit >= 1 && c.rts_retry_limit >= 1 && c.long_retry_limit >= 1,
		"retry limits: 1 at least");
	require(c.queue_pkts >= 1, "queue: 1 packet at least");
	for (const Station &station : c.stations) {
		const Place &place = station.place;

		require(place.circle_radius_m == 0 || place.circle_period_s > 0,
			"a circle takes a period above 0 s");
	}
}

/* A helper whose stations have ThresholdWifiPhy. */
class ThresholdPhyHelper : public YansWifiPhyHelper
{
public:
	ThresholdPhyHelper()
	{
		m_phy.front().SetTypeId("ThresholdWifiPhy");
	}
};

/* What a station locks on: by ns-3's reading what it could decode as it begins, by ns-2's whatever it
 * senses, so that it misses what begins meanwhile. */
void set_lock(const DsssConfig &c, YansWifiPhyHelper &phy)
{
	if (c.eifs_after_sensed) {
		phy.DisablePreambleDetectionModel();
		return;
	}
	phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi",
				      DoubleValue(DECODABLE_DBM - MARGIN_DB), "Threshold",
				      DoubleValue(c.capture_db));
}

/* Set ranges by the loss: what arrives from range_m is just decoded, what arrives from
 * carrier_sense_m is just sensed. */
void set_ranges(const DsssConfig &c, YansWifiPhyHelper &phy, YansWifiChannelHelper &channel)
{
	double loss_at_1m_db =
		TRANSMIT_DBM - DECODABLE_DBM - 10 * c.loss_exponent * std::log10(c.range_m);
	double sensed_dbm = DECODABLE_DBM - MARGIN_DB -
			    10 * c.loss_exponent * std::log10(c.carrier_sense_m / c.range_m);

	// flat below the reference distance, so that is 1 m
	channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent",
				   DoubleValue(c.loss_exponent), "ReferenceDistance", DoubleValue(1),
				   "ReferenceLoss", DoubleValue(loss_at_1m_db));
	phy.Set("TxPowerStart", DoubleValue(TRANSMIT_DBM));
	phy.Set("TxPowerEnd", DoubleValue(TRANSMIT_DBM));
	// the sensitivity is one of 20 MHz, DSSS has 22
	phy.Set("RxSensitivity", DoubleValue(sensed_dbm - 10 * std::log10(22.0 / 20)));
	phy.Set("CcaEdThreshold", DoubleValue(sensed_dbm));
	phy.Set("DecodableDbm", DoubleValue(DECODABLE_DBM - MARGIN_DB));
	phy.Set("CaptureDb", DoubleValue(c.capture_db));
	set_lock(c, phy);
}

void set_defaults(const DsssConfig &c)
{
	std::string queue = std::to_string(c.queue_pkts) + "p";

	RngSeedManager::SetSeed(1);
	RngSeedManager::SetRun(c.seed);
	Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
			   UintegerValue(c.rts_threshold_bytes));
	Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc",
			   UintegerValue(c.short_retry_limit));
	Config::SetDefault("RtsLimitManager::RtsAttempts", UintegerValue(c.rts_retry_limit));
	Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc",
			   UintegerValue(c.long_retry_limit));
	Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(queue)));
	Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Days(365))); // never too old
}

/* What ns-3 does at the end of a frame with errors, also where there was only energy. */
void wait_eifs_after_sensed(Ptr<WifiNetDevice> device)
{
	auto phy = DynamicCast<ThresholdWifiPhy>(device->GetPhy());
	auto access = device->GetMac()->GetChannelAccessManager();

	phy->dsss()->on_unread([phy = GetPointer(phy), access]() {
		if (phy->IsStateRx() || phy->IsStateTx())
			return;
		access->NotifyRxStartNow(Time(0));
		access->NotifyRxEndErrorNow();
	});
}

} // namespace

DsssMedium::DsssMedium(const DsssConfig &c, Receiver r) : receiver(std::move(r)), queue_pkts(c.queue_pkts)
{
	std::string data = dsss_mode(c.rate_mbps, "rate");
	std::string control = dsss_mode(c.control_rate_mbps, "control rate");

	check(c);
	set_defaults(c);
	WifiHelper wifi;
	wifi.SetStandard(WIFI_STANDARD_80211b);
	wifi.SetRemoteStationManager("RtsLimitManager", "DataMode", StringValue(data),
				     "ControlMode", StringValue(control), "NonUnicastMode",
				     StringValue(control));
	ThresholdPhyHelper phy;
	YansWifiChannelHelper channel;
	delay = CreateObject<ConstantSpeedPropagationDelayModel>();
	channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
	set_ranges(c, phy, channel);
	phy.SetChannel(channel.Create());
	WifiMacHelper mac;
	mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));

	NodeContainer nodes;
	nodes.Create(c.stations.size());
	for (size_t i = 0; i < c.stations.size(); i++) {
		auto place = at_place(c.stations[i].place);

		nodes.Get(i)->AggregateObject(place);
		places.push_back(place);
	}
	NetDeviceContainer installed = wifi.Install(phy, mac, nodes);
	for (size_t i = 0; i < c.stations.size(); i++) {
		auto device = DynamicCast<WifiNetDevice>(installed.Get(i));

		device->SetAddress(address(i));
		wifi.AssignStreams(NetDeviceContainer(device), i * STREAMS_PER_NODE);
		devices.push_back(device);
		node_counters.push_back(std::make_unique<DsssCounters>());
		node_counters[i]->watch(device->GetMac(), c.stations[i].ipv4);
		if (c.eifs_after_sensed)
			wait_eifs_after_sensed(device);
		std::function<void(WifiConstPsduMap, WifiTxVector, double)> sent =
			[this, i](WifiConstPsduMap psdus, WifiTxVector vector, double) {
				on_transmit(i, psdus, vector);
			};
		device->GetPhy()->TraceConnectWithoutContext("PhyTxPsduBegin",
							     Callback<void, WifiConstPsduMap, WifiTxVector, double>(sent));
		nodes.Get(i)->RegisterProtocolHandler(
			[this, i](Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t ethertype,
				  const Address &source, const Address &destination,
				  NetDevice::PacketType) {
				node_counters[i]->packet_received();
				receiver(i, *packet, ethertype, Mac48Address::ConvertFrom(source),
					 Mac48Address::ConvertFrom(destination));
			},
			0, device);
	}
	airtimes.resize(devices.size());
	fastest.SetMode(WifiMode(dsss_mode(std::max(c.rate_mbps, c.control_rate_mbps), "rate")));
	fastest.SetPreambleType(WIFI_PREAMBLE_LONG);
}

void DsssMedium::send(size_t from, Ptr<Packet> payload, uint16_t ethertype, Mac48Address,
		      Mac48Address destination)
{
	Ptr<WifiNetDevice> device = devices.at(from);

	// ns-3's queue (3.37) drops what it has no room for without a word
	if (device->GetMac()->GetTxopQueue(AC_BE_NQOS)->GetNPackets() >= queue_pkts) {
		node_counters[from]->packet_refused(*payload, ethertype);
		return;
	}
	next_airtime_ns(from); // forget what has left
	Time airtime = WifiPhy::CalculateTxDuration(payload->GetSize() + DATA_OVERHEAD_BYTES, fastest,
						    WIFI_PHY_BAND_2_4GHZ);
	airtimes[from].push_back(airtime.GetNanoSeconds());
	device->Send(payload, destination, ethertype);
}

/* Note when this frame ends where it is addressed to, if that is a node's kernel. */
void DsssMedium::on_transmit(size_t from, WifiConstPsduMap psdus, WifiTxVector vector)
{
	const WifiMacHeader &header = psdus.begin()->second->GetHeader(0);

	if (!header.IsData())
		return;
	Time end = Simulator::Now() +
		   WifiPhy::CalculateTxDuration(psdus, vector, WIFI_PHY_BAND_2_4GHZ);
	for (size_t to = 0; to < places.size(); to++) {
		if (header.GetAddr1() == address(to) || (header.GetAddr1().IsGroup() && to != from))
			deliveries.push(
				(end + delay->GetDelay(places[from], places[to])).GetNanoSeconds());
	}
}

/* How long the shortest frame takes that node NODE may send next; INT64_MAX if it has none. The first
 * in the queue may have been received, but its acknowledgement not yet: then it is the second. */
int64_t DsssMedium::next_airtime_ns(size_t node)
{
	auto &waiting = airtimes[node];
	size_t queued = devices[node]->GetMac()->GetTxopQueue(AC_BE_NQOS)->GetNPackets();

	while (waiting.size() > queued)
		waiting.pop_front();
	if (waiting.empty())
		return NEVER_NS;
	return waiting.size() == 1 ? waiting[0] : std::min(waiting[0], waiting[1]);
}

int64_t DsssMedium::next_delivery_ns(int64_t next_event_ns)
{
	while (!deliveries.empty() && deliveries.top() <= Simulator::Now().GetNanoSeconds())
		deliveries.pop();
	int64_t bound_ns = deliveries.empty() ? NEVER_NS : deliveries.top();
	if (next_event_ns == NEVER_NS)
		return bound_ns;
	for (size_t node = 0; node < devices.size(); node++) {
		int64_t airtime_ns = next_airtime_ns(node);
		auto held_ns = static_cast<int64_t>(node_counters[node]->held_back_until_ns());

		if (airtime_ns != NEVER_NS)
			bound_ns = std::min(bound_ns, std::max(next_event_ns, held_ns) + airtime_ns);
	}
	return bound_ns;
}

CounterNumbers DsssMedium::counters(size_t node)
{
	return node_counters.at(node)->read();
}
