// SPDX-License-Identifier: GPL-2.0-only
#include "wifi_ap.h"

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/double.h>
#include <ns3/he-configuration.h>
#include <ns3/ht-configuration.h>
#include <ns3/node-container.h>
#include <ns3/node.h>
#include <ns3/qos-txop.h>
#include <ns3/queue-size.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/ssid.h>
#include <ns3/sta-wifi-mac.h>
#include <ns3/string.h>
#include <ns3/tag.h>
#include <ns3/uinteger.h>
#include <ns3/wifi-helper.h>
#include <ns3/wifi-mac-queue-container.h>
#include <ns3/wifi-psdu.h>
#include <ns3/yans-wifi-helper.h>

#include <algorithm>
#include <stdexcept>

using namespace ns3;

namespace
{

constexpr int64_t ASSOCIATE_NS = 2'000'000'000; // in which all stations do
constexpr int64_t AGREE_NS = 20'000'000; // what two nodes that are alone need, and more
constexpr int AGREE_ROUNDS = 5;
constexpr uint16_t ETHERTYPE_NOTHING = 0x88b5; // of what is sent before anybody listens
constexpr int64_t SHORTEST_NS = 28'000; // an ACK at 24 Mb/s: nothing that is noticed is shorter
constexpr uint32_t MTU_BYTES = 1514; // there is room for one frame at least where none is queued
constexpr int64_t STREAMS_PER_NODE = 100; // ns-3's random variables of a device, at most
constexpr uint8_t TID = 0; // all is best effort
constexpr uint32_t MISSED_BEACONS_MAX = 1'000'000'000; // stations stay

struct Standard {
	const char *name;
	WifiStandard standard;
	const char *mode;
	int mcs_max;
	uint32_t width_max_mhz;
	std::vector<uint32_t> guard_intervals_ns;
};

const Standard standards[] = {
	{ "n", WIFI_STANDARD_80211n, "HtMcs", 7, 40, { 400, 800 } },
	{ "ac", WIFI_STANDARD_80211ac, "VhtMcs", 9, 80, { 400, 800 } },
	{ "ax", WIFI_STANDARD_80211ax, "HeMcs", 11, 80, { 800, 1600, 3200 } },
};

void require(bool holds, const char *what)
{
	if (!holds)
		throw std::invalid_argument(what);
}

const Standard &standard_of(const ApConfig &c)
{
	for (const Standard &standard : standards) {
		if (c.standard == standard.name)
			return standard;
	}
	throw std::invalid_argument("standard: n, ac or ax, not " + c.standard);
}

void check(const ApConfig &c)
{
	const Standard &standard = standard_of(c);
	auto &intervals = standard.guard_intervals_ns;

	require(!c.stations.empty(), "no station");
	require(c.stations.size() <= 200, "more than 200 stations");
	require(c.width_mhz == 20 || c.width_mhz == 40 || c.width_mhz == 80, "width: 20, 40 or 80 MHz");
	require(c.width_mhz <= standard.width_max_mhz, "width: 802.11n has 20 and 40 MHz");
	require(c.streams >= 1 && c.streams <= 4, "streams: 1 to 4");
	require(std::find(intervals.begin(), intervals.end(), c.guard_interval_ns) != intervals.end(),
		"guard interval: 400 or 800 ns with n and ac; 800, 1600 or 3200 with ax");
	require(c.mcs <= standard.mcs_max, "MCS: to 7 with n, 9 with ac, 11 with ax");
	require(c.max_ampdu_bytes <= 65535 || c.standard != "n", "A-MPDU: 65535 bytes at most with n");
	require(c.max_ampdu_bytes <= 1048575, "A-MPDU: 1048575 bytes at most");
	require(c.lifetime_s > 0, "lifetime: above 0 s");
	require(c.loss_exponent >= 2 && c.loss_exponent <= 6, "loss exponent: 2 to 6");
	require(c.airtime_us > 0 && c.airtime_many_us > 0, "airtime limits: above 0");
	require(c.queue_pkts >= 1, "queue: 1 packet at least");
	for (const Place &place : c.stations)
		require(place.circle_radius_m == 0 || place.circle_period_s > 0,
			"a circle takes a period above 0 s");
}

void set_defaults(const ApConfig &c)
{
	auto limit_pkts = static_cast<uint32_t>(c.queue_pkts * c.stations.size() + 1000);

	RngSeedManager::SetSeed(1);
	RngSeedManager::SetRun(c.seed);
	// it is each port's limit that counts, and is looked at before
	Config::SetDefault("ns3::WifiMacQueue::MaxSize",
			   QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limit_pkts)));
	Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(c.lifetime_s)));
	Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
			   UintegerValue(c.rts_threshold_bytes));
	Config::SetDefault("ns3::StaWifiMac::MaxMissedBeacons", UintegerValue(MISSED_BEACONS_MAX));
	Config::SetDefault("ns3::HtConfiguration::ShortGuardIntervalSupported",
			   BooleanValue(c.guard_interval_ns == 400));
	Config::SetDefault("ns3::HeConfiguration::GuardInterval",
			   TimeValue(NanoSeconds(std::max(c.guard_interval_ns, 800u))));
}

void set_rates(const ApConfig &c, WifiHelper &wifi)
{
	const Standard &standard = standard_of(c);

	wifi.SetStandard(standard.standard);
	if (c.mcs < 0) {
		wifi.SetRemoteStationManager("ns3::MinstrelHtWifiManager");
		return;
	}
	std::string mode = standard.mode + std::to_string(c.mcs);
	if (c.standard == "n") // whose number counts the streams as well
		mode = standard.mode + std::to_string(c.mcs + 8 * (c.streams - 1));
	wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(mode),
				     "ControlMode", StringValue("OfdmRate24Mbps"));
}

void set_phy(const ApConfig &c, YansWifiPhyHelper &phy)
{
	YansWifiChannelHelper channel;

	channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
	channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent",
				   DoubleValue(c.loss_exponent), "ReferenceDistance", DoubleValue(1),
				   "ReferenceLoss", DoubleValue(c.loss_1m_db));
	phy.SetChannel(channel.Create());
	phy.Set("TxPowerStart", DoubleValue(c.transmit_dbm));
	phy.Set("TxPowerEnd", DoubleValue(c.transmit_dbm));
	phy.Set("ChannelSettings", StringValue("{0, " + std::to_string(c.width_mhz) + ", BAND_5GHZ, 0}"));
	phy.Set("Antennas", UintegerValue(c.streams));
	phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(c.streams));
	phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(c.streams));
}

WifiContainerQueueId queue_id(Mac48Address peer)
{
	return { WIFI_QOSDATA_UNICAST_QUEUE, peer, TID };
}

} // namespace

/* --- addresses ------------------------------------------------------------ */

namespace
{

/** Whom a frame is from and for beyond the air, where it is between the access point and a station.
 * (On a real one, addresses 3 and 4 say so; the length is the same.) */
class Envelope : public Tag
{
public:
	static TypeId GetTypeId()
	{
		static TypeId tid =
			TypeId("ApEnvelope").SetParent<Tag>().AddConstructor<Envelope>();
		return tid;
	}

	Mac48Address source, destination;

private:
	TypeId GetInstanceTypeId() const override
	{
		return GetTypeId();
	}

	uint32_t GetSerializedSize() const override
	{
		return 12;
	}

	void Serialize(TagBuffer at) const override
	{
		uint8_t bytes[12];

		source.CopyTo(bytes);
		destination.CopyTo(bytes + 6);
		at.Write(bytes, sizeof(bytes));
	}

	void Deserialize(TagBuffer at) override
	{
		uint8_t bytes[12];

		at.Read(bytes, sizeof(bytes));
		source.CopyFrom(bytes);
		destination.CopyFrom(bytes + 6);
	}

	void Print(std::ostream &out) const override
	{
		out << source << " to " << destination;
	}
};

NS_OBJECT_ENSURE_REGISTERED(Envelope);

} // namespace

/* --- counters ------------------------------------------------------------- */

void ApCounters::watch(Ptr<WifiMac> watched, uint32_t address)
{
	NodeCounters::watch(watched, address);
	phy->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&ApCounters::on_dropped_by_phy, this));
	phy->TraceConnectWithoutContext("MonitorSnifferRx", MakeCallback(&ApCounters::on_heard, this));
}

void ApCounters::NotifyCcaBusyStart(Time duration, WifiChannelListType channel,
				    const std::vector<Time> &)
{
	if (channel == WIFI_CHANLIST_PRIMARY)
		sense(duration);
}

uint64_t ApCounters::collisions() const
{
	return counts.collisions;
}

uint64_t ApCounters::queue_pkts() const
{
	return mac->GetTxopQueue(AC_BE)->GetNPackets();
}

void ApCounters::on_dropped_by_phy(Ptr<const Packet>, WifiPhyRxfailureReason reason)
{
	counts.collisions += reason != FILTERED;
}

void ApCounters::on_heard(Ptr<const Packet> packet, uint16_t, WifiTxVector vector, MpduInfo,
			  SignalNoiseDbm, uint16_t)
{
	WifiMacHeader header;

	packet->PeekHeader(header);
	decoded(header, vector);
}

/* --- the medium ----------------------------------------------------------- */

ApMedium::ApMedium(const ApConfig &c, LabSimulator &simulator, Receiver r)
	: receiver(std::move(r)), config(c)
{
	auto both = static_cast<int64_t>(2 * c.stations.size());

	check(c);
	begin_ns = ASSOCIATE_NS + both * AGREE_ROUNDS * AGREE_NS;
	set_defaults(c);
	delay = CreateObject<ConstantSpeedPropagationDelayModel>();
	install(c);
	size_t n = stations();
	double slowest_bps = devices[1]->GetPhy()->GetDefaultMode().GetDataRate(20);
	for (size_t i = 0; i < n; i++)
		ports.push_back({ 0, address(i + 1), slowest_bps });
	for (size_t i = 0; i < n; i++)
		ports.push_back({ i + 1, address(0), slowest_bps });
	data_until_ns.resize(n + 1);
	held.resize(n + 1);
	ppdus_sent.resize(n + 1);
	for (size_t node = 0; node <= n; node++)
		watch(node);
	associate(simulator);
	agree(simulator);
	for (auto &counted : node_counters)
		counted->clear();
	ppdus_sent.assign(n + 1, 0);
	is_up = true;
}

void ApMedium::install(const ApConfig &c)
{
	WifiHelper wifi;
	YansWifiPhyHelper phy;
	WifiMacHelper mac;
	NodeContainer nodes;

	set_rates(c, wifi);
	set_phy(c, phy);
	nodes.Create(c.stations.size() + 1);
	for (size_t i = 0; i < nodes.GetN(); i++) {
		auto node = nodes.Get(static_cast<uint32_t>(i));
		auto place = at_place(i ? c.stations[i - 1] : Place(), begin_ns);

		node->AggregateObject(place);
		places.push_back(place);
		mac.SetType(i ? "ns3::StaWifiMac" : "ns3::ApWifiMac", "Ssid", SsidValue(Ssid("lab")),
			    "BE_MaxAmpduSize", UintegerValue(c.max_ampdu_bytes), "BE_MaxAmsduSize",
			    UintegerValue(0));
		NetDeviceContainer installed = wifi.Install(phy, mac, node);
		auto device = DynamicCast<WifiNetDevice>(installed.Get(0));
		device->SetAddress(address(i));
		wifi.AssignStreams(installed, static_cast<int64_t>(i) * STREAMS_PER_NODE);
		devices.push_back(device);
	}
}

void ApMedium::watch(size_t node)
{
	Ptr<WifiNetDevice> device = devices[node];

	node_counters.push_back(std::make_unique<ApCounters>());
	node_counters[node]->watch(device->GetMac(), 0);
	std::function<void(WifiConstPsduMap, WifiTxVector, double)> sent =
		[this, node](WifiConstPsduMap psdus, WifiTxVector vector, double) {
			on_transmit(node, psdus, vector);
		};
	device->GetPhy()->TraceConnectWithoutContext(
		"PhyTxPsduBegin", Callback<void, WifiConstPsduMap, WifiTxVector, double>(sent));
	device->GetNode()->RegisterProtocolHandler(
		[this, node](Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t ethertype,
			     const Address &source, const Address &, NetDevice::PacketType) {
			Envelope envelope;

			if (!packet->PeekPacketTag(envelope))
				throw std::logic_error("a frame that nobody sent");
			on_received(node, Mac48Address::ConvertFrom(source),
				    { 0, packet, ethertype, envelope.source, envelope.destination });
		},
		0, device);
}

/* Run ahead until all stations have joined. */
void ApMedium::associate(LabSimulator &simulator) const
{
	simulator.run_until(ASSOCIATE_NS);
	for (size_t i = 1; i < devices.size(); i++) {
		if (!DynamicCast<StaWifiMac>(devices[i]->GetMac())->IsAssociated())
			throw std::runtime_error("station " + std::to_string(i) +
						 " does not hear the access point: it is too far away");
	}
}

/* Then let all ports agree on block acknowledgements, one after the other. ns-3 (3.37) goes on without
 * when the answer to a request comes late, as where many start at once, yet takes it when it comes: the
 * receiver then waits for frames that it has had. The kernels' time begins after that. */
void ApMedium::agree(LabSimulator &simulator)
{
	for (size_t port = 0; config.max_ampdu_bytes && port < ports.size(); port++) {
		Mac48Address peer = ports[port].peer;
		auto txop = devices[ports[port].node]->GetMac()->GetQosTxop(AC_BE);

		for (int round = 0; !txop->GetBaAgreementEstablished(peer, TID); round++) {
			if (round == AGREE_ROUNDS)
				throw std::runtime_error("a station hardly hears the access point, or it the"
							 " station: it is too far away");
			for (int i = 0; i < 2; i++) // of one alone there would be nothing to agree on
				send(port, Create<Packet>(1), ETHERTYPE_NOTHING, peer, peer);
			simulator.run_until(Simulator::Now().GetNanoSeconds() + AGREE_NS);
		}
	}
	simulator.run_until(begin_ns);
}

int64_t ApMedium::lead_ns() const
{
	return begin_ns;
}

size_t ApMedium::node_of(size_t port) const
{
	return ports[port].node;
}

/* Node 0, the access point, where there is none with this address. */
size_t ApMedium::node_at(Mac48Address of) const
{
	uint8_t bytes[6];

	of.CopyTo(bytes);
	size_t node = bytes[5] ? bytes[5] - 1u : 0;
	return node < devices.size() && of == address(node) ? node : 0;
}

/* The port through which node FROM sends to node TO, one of which is the access point. */
size_t ApMedium::port_between(size_t from, size_t to) const
{
	return from ? stations() + from - 1 : to - 1;
}

Ptr<WifiMacQueue> ApMedium::queue_of(size_t node) const
{
	return devices[node]->GetMac()->GetTxopQueue(AC_BE);
}

void ApMedium::send(size_t from, Ptr<Packet> payload, uint16_t ethertype, Mac48Address source,
		    Mac48Address destination)
{
	const Port &port = ports.at(from);
	Envelope envelope;

	if (queue_of(port.node)->GetNPackets(queue_id(port.peer)) >= config.queue_pkts) {
		node_counters[port.node]->packet_refused(*payload, ethertype);
		return;
	}
	envelope.source = source;
	envelope.destination = destination;
	payload->AddPacketTag(envelope);
	devices[port.node]->Send(payload, port.peer, ethertype);
}

/* What is queued for a port's peer, in time on the air at the rate that it had last. */
double ApMedium::queued_us(const Port &port) const
{
	return queue_of(port.node)->GetNBytes(queue_id(port.peer)) * 8e6 / port.rate_bps;
}

int64_t ApMedium::room_bytes(size_t at)
{
	const Port &port = ports[at];
	double mine_us = queued_us(port);
	int others = 0;

	for (const Port &other : ports)
		others += other.node == port.node && &other != &port &&
			  queue_of(other.node)->GetNPackets(queue_id(other.peer));
	double limit_us = others >= 2 ? config.airtime_many_us : config.airtime_us;
	auto bytes = static_cast<int64_t>((limit_us - mine_us) * port.rate_bps / 8e6);
	return std::max<int64_t>(bytes, mine_us > 0 ? 0 : MTU_BYTES);
}

/* Note when this frame ends where it is addressed to, if it carries data or answers such: data and
 * requests for block acknowledgements hand frames over there, answers make room here. */
void ApMedium::on_transmit(size_t from, WifiConstPsduMap psdus, WifiTxVector vector)
{
	const WifiPsdu &psdu = *psdus.begin()->second;
	const WifiMacHeader &header = psdu.GetHeader(0);
	size_t to = node_at(header.GetAddr1());

	if (!header.IsData() && !header.IsBlockAckReq() && !header.IsBlockAck() && !header.IsAck())
		return;
	Time end = Simulator::Now() +
		   WifiPhy::CalculateTxDuration(psdus, vector, devices[from]->GetPhy()->GetPhyBand());
	int64_t end_ns = (end + delay->GetDelay(places[from], places[to])).GetNanoSeconds();
	ends.push(end_ns);
	if (!header.IsData())
		return;
	ppdus_sent[from]++;
	data_until_ns[from] = end_ns;
	ports[port_between(from, to)].rate_bps = static_cast<double>(vector.GetMode().GetDataRate(vector));
}

/* The MPDUs of a PPDU come in one by one, and are handed over at its end. */
void ApMedium::on_received(size_t to, Mac48Address sender, Held frame)
{
	size_t from = to ? 0 : node_at(sender);
	int64_t wait_ns = data_until_ns[from] - Simulator::Now().GetNanoSeconds();

	frame.port = port_between(to, from); // the one through which the receiver would answer
	held[from].push_back(frame);
	if (wait_ns <= 0)
		hand_over(from);
	else if (held[from].size() == 1)
		Simulator::Schedule(NanoSeconds(wait_ns), &ApMedium::hand_over, this, from);
}

void ApMedium::hand_over(size_t from)
{
	std::vector<Held> frames;

	frames.swap(held[from]);
	for (const Held &frame : frames) {
		if (!is_up)
			continue;
		node_counters[ports[frame.port].node]->packet_received();
		receiver(frame.port, *frame.payload, frame.ethertype, frame.source, frame.destination);
	}
}

int64_t ApMedium::next_delivery_ns(int64_t next_event_ns)
{
	int64_t now_ns = Simulator::Now().GetNanoSeconds();
	bool queued = false;

	while (!ends.empty() && ends.top() <= now_ns)
		ends.pop();
	int64_t bound_ns = ends.empty() ? NEVER_NS : ends.top();
	for (size_t node = 0; node < devices.size() && !queued; node++)
		queued = queue_of(node)->GetNPackets() > 0;
	if (!queued || next_event_ns == NEVER_NS)
		return bound_ns;
	for (auto &device : devices) {
		Ptr<WifiPhy> phy = device->GetPhy();
		int64_t start_ns = next_event_ns;

		// who only senses energy may still answer a frame that it has got
		if (phy->IsStateTx() || phy->IsStateRx())
			start_ns = std::max(start_ns, now_ns + phy->GetDelayUntilIdle().GetNanoSeconds());
		bound_ns = std::min(bound_ns, start_ns + SHORTEST_NS);
	}
	return bound_ns;
}

CounterNumbers ApMedium::counters(size_t node)
{
	return node_counters.at(node)->read();
}

void ApMedium::write_summary(std::ostream &out) const
{
	out << ", \"ppdus_sent\": [";
	for (size_t node = 0; node < ppdus_sent.size(); node++)
		out << (node ? ", " : "") << ppdus_sent[node];
	out << "], \"last_rates_mbps\": [";
	for (size_t i = 0; i < ports.size(); i++)
		out << (i ? ", " : "") << ports[i].rate_bps / 1e6;
	out << "]";
}
