// SPDX-License-Identifier: GPL-2.0-only
#include "counters.h"

#include <ns3/simulator.h>
#include <ns3/wifi-mac-header.h>
#include <ns3/wifi-mac-queue.h>
#include <ns3/wifi-psdu.h>

#include <algorithm>
#include <cstring>

using namespace ns3;

const std::array<const char *, COUNTERS> counter_names = {
	"busy_ns", "transmit_ns", "receive_ns", "sense_ns", "nav_ns", "data_sent", "rts_sent",
	"cts_missed", "ack_missed", "delivered", "delivered_bytes", "received", "collisions",
	"retry_drops", "queue_drops", "own_queue_drops", "queue_pkts",
};

namespace
{

constexpr uint16_t ETHERTYPE_IPV4 = 0x0800;
constexpr size_t IPV4_BYTES = 20, IPV4_SOURCE = 12;
constexpr uint32_t CTS_BYTES = 14;
constexpr uint64_t SLOT_NS = 20000;

uint64_t now_ns()
{
	return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

uint64_t end_ns(Time duration)
{
	return now_ns() + static_cast<uint64_t>(duration.GetNanoSeconds());
}

uint32_t big_endian(const uint8_t *bytes)
{
	return static_cast<uint32_t>(bytes[0]) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

} // namespace

void NodeCounters::watch(Ptr<WifiMac> watched, uint32_t address)
{
	auto manager = watched->GetWifiRemoteStationManager();

	mac = watched;
	phy = mac->GetWifiPhy();
	ipv4 = address;
	phy->RegisterListener(this);
	phy->TraceConnectWithoutContext("PhyTxPsduBegin", MakeCallback(&NodeCounters::on_sent, this));
	mac->TraceConnectWithoutContext("AckedMpdu", MakeCallback(&NodeCounters::on_acked, this));
	mac->TraceConnectWithoutContext("DroppedMpdu", MakeCallback(&NodeCounters::on_dropped, this));
	manager->TraceConnectWithoutContext("MacTxRtsFailed",
					    MakeCallback(&NodeCounters::on_rts_failed, this));
	manager->TraceConnectWithoutContext("MacTxDataFailed",
					    MakeCallback(&NodeCounters::on_data_failed, this));
}

void NodeCounters::clear()
{
	account();
	counts = {};
}

CounterNumbers NodeCounters::read()
{
	CounterNumbers numbers;

	account();
	counts.busy_ns =
		counts.transmit_ns + counts.receive_ns + counts.sense_ns + counts.nav_ns;
	counts.collisions = collisions();
	counts.queue_pkts = queue_pkts();
	static_assert(sizeof(counts) == sizeof(numbers));
	std::memcpy(numbers.data(), &counts, sizeof(counts));
	return numbers;
}

uint64_t NodeCounters::nav_until_ns() const
{
	return nav_check_ns ? std::min(nav_check_ns, nav_end_ns) : nav_end_ns;
}

/* Add the time since the last call to what the node was doing, piece by piece. */
void NodeCounters::account()
{
	uint64_t until = now_ns();

	while (accounted_ns < until) {
		uint64_t to = until, nav_until = nav_until_ns();

		if (accounted_ns < transmit_until_ns) {
			to = std::min(to, transmit_until_ns);
			counts.transmit_ns += to - accounted_ns;
		} else if (receiving) {
			counts.receive_ns += to - accounted_ns;
		} else if (accounted_ns < sense_until_ns) {
			to = std::min(to, sense_until_ns);
			counts.sense_ns += to - accounted_ns;
		} else if (accounted_ns < nav_until) {
			to = std::min(to, nav_until);
			counts.nav_ns += to - accounted_ns;
		}
		accounted_ns = to;
	}
}

void NodeCounters::NotifyRxStart(Time)
{
	account();
	if (nav_check_ns && now_ns() > nav_check_ns)
		nav_end_ns = std::min(nav_end_ns, nav_check_ns);
	nav_check_ns = 0;
	receiving = true;
}

void NodeCounters::receive_ended()
{
	account();
	receiving = false;
}

void NodeCounters::NotifyRxEndOk()
{
	receive_ended();
}

void NodeCounters::NotifyRxEndError()
{
	receive_ended();
}

void NodeCounters::NotifyTxStart(Time duration, double)
{
	account();
	receiving = false; // what it was locked on is lost
	transmit_until_ns = end_ns(duration);
}

void NodeCounters::sense(Time duration)
{
	account();
	sense_until_ns = std::max(sense_until_ns, end_ns(duration));
}

void NodeCounters::on_sent(WifiConstPsduMap psdus, WifiTxVector, double)
{
	const WifiPsdu &psdu = *psdus.begin()->second;
	const WifiMacHeader &header = psdu.GetHeader(0);

	counts.data_sent += header.IsData() ? psdu.GetNMpdus() : 0;
	counts.rts_sent += header.IsRts();
}

/* IEEE 802.11-2007 9.2.5.4: a frame for others sets the NAV; one set by an RTS may be taken back
 * when no answer to it has begun within 2 SIFS, a CTS, the start of a reception and 2 slots. */
void NodeCounters::decoded(const WifiMacHeader &header, const WifiTxVector &vector)
{
	if (header.GetAddr1() == mac->GetAddress())
		return;
	account();
	uint64_t end = end_ns(header.GetDuration());
	if (end <= nav_until_ns())
		return;
	nav_end_ns = end;
	nav_check_ns = 0;
	if (header.IsRts()) {
		Time cts = WifiPhy::CalculateTxDuration(CTS_BYTES, vector, phy->GetPhyBand());
		Time preamble = WifiPhy::CalculatePhyPreambleAndHeaderDuration(vector);

		nav_check_ns = end_ns(2 * phy->GetSifs() + cts + preamble + 2 * phy->GetSlot());
	}
}

void NodeCounters::on_acked(Ptr<const WifiMpdu> mpdu)
{
	counts.delivered++;
	counts.delivered_bytes += mpdu->GetPacketSize();
}

/* The queue's own limit is never reached (send() of a medium), so it was tried too often, or for too
 * long, or the receiver's window went past it. */
void NodeCounters::on_dropped(WifiMacDropReason reason, Ptr<const WifiMpdu> mpdu)
{
	counts.retry_drops += mpdu->GetHeader().IsData() && reason != WIFI_MAC_DROP_FAILED_ENQUEUE;
}

void NodeCounters::on_rts_failed(Mac48Address)
{
	counts.cts_missed++;
}

void NodeCounters::on_data_failed(Mac48Address)
{
	counts.ack_missed++;
}

void NodeCounters::packet_refused(const Packet &packet, uint16_t ethertype)
{
	uint8_t ip[IPV4_BYTES];
	bool whole = packet.CopyData(ip, sizeof(ip)) == sizeof(ip);

	if (ipv4 && ethertype == ETHERTYPE_IPV4 && whole && big_endian(ip + IPV4_SOURCE) == ipv4)
		counts.own_queue_drops++;
	else
		counts.queue_drops++;
}

void DsssCounters::watch(Ptr<WifiMac> watched, uint32_t address)
{
	NodeCounters::watch(watched, address);
	threshold_phy = DynamicCast<ThresholdWifiPhy>(phy);
	threshold_phy->dsss()->on_arrival([this](Time duration) { on_arrival(duration); });
	threshold_phy->dsss()->on_decoded([this](const WifiPsdu &psdu, const WifiTxVector &vector) {
		decoded(psdu.GetHeader(0), vector);
	});
}

uint64_t DsssCounters::collisions() const
{
	return threshold_phy->dsss()->lost();
}

uint64_t DsssCounters::queue_pkts() const
{
	return mac->GetTxopQueue(AC_BE_NQOS)->GetNPackets();
}

/* ns-3 itself takes 4 us to notice that the medium is busy. */
void DsssCounters::on_arrival(Time duration)
{
	last_arrival_ns = now_ns();
	sense(duration);
}

uint64_t DsssCounters::held_back_until_ns() const
{
	if (now_ns() < last_arrival_ns + SLOT_NS)
		return transmit_until_ns;
	return std::max(transmit_until_ns, sense_until_ns);
}
