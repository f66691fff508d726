/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An access point and its stations: IEEE 802.11n, ac or ax of ns-3 in the 5 GHz band,
 * with A-MPDUs, block acknowledgements and Minstrel-HT. PHY, interference and errors
 * are ns-3's own (YansWifiPhy), unlike those of dsss.h.
 *
 * With n stations there are 2n ports: 0 to n-1 are the access point's towards each of
 * them, as mac80211 has a queue for each station; n to 2n-1 are the stations'. Node 0
 * is the access point.
 */
#ifndef WIFI_AP_H
#define WIFI_AP_H

#include "counters.h"
#include "lab_simulator.h"
#include "medium.h"

#include <ns3/propagation-delay-model.h>
#include <ns3/wifi-mac-queue.h>

#include <memory>
#include <queue>
#include <string>
#include <vector>

struct ApConfig {
	std::string standard = "n"; // n, ac, ax
	uint32_t width_mhz = 20; // 20, 40; ac and ax: also 80
	uint32_t streams = 1; // spatial streams and antennas, 1 to 4
	uint32_t guard_interval_ns = 800; // n and ac: 400 or 800; ax: 800, 1600 or 3200
	int mcs = -1; // of all data; -1: Minstrel-HT chooses
	uint32_t max_ampdu_bytes = 65535; // 0: no aggregation
	uint32_t rts_threshold_bytes = 65535; // longer PPDUs (of all their MPDUs) use RTS
	double lifetime_s = 1; // after which an MPDU that was not acknowledged is given up
	double transmit_dbm = 20;
	double loss_1m_db = 46.6777; // free space at 5.15 GHz
	double loss_exponent = 3; // of the path loss beyond 1 m
	// what a port may have queued in the MAC, after mac80211's AQL (12 ms each until they are 24
	// together, then 5 ms each)
	uint32_t airtime_us = 12000; // while not more than two of its node's ports have anything
	uint32_t airtime_many_us = 5000;
	uint32_t queue_pkts = 1000; // of a port, where nothing holds its kernel back
	uint32_t seed = 1;
	std::vector<Place> stations; // the access point is at 0, 0
};

/** What one node did and heard, from what any PHY of ns-3 tells. */
class ApCounters : public NodeCounters
{
public:
	void watch(ns3::Ptr<ns3::WifiMac> watched, uint32_t address) override;
	void NotifyCcaBusyStart(ns3::Time duration, ns3::WifiChannelListType channel,
				const std::vector<ns3::Time> &) override;

protected:
	uint64_t collisions() const override;
	uint64_t queue_pkts() const override;

private:
	void on_dropped_by_phy(ns3::Ptr<const ns3::Packet>, ns3::WifiPhyRxfailureReason reason);
	void on_heard(ns3::Ptr<const ns3::Packet> packet, uint16_t, ns3::WifiTxVector vector,
		      ns3::MpduInfo, ns3::SignalNoiseDbm, uint16_t);
};

class ApMedium : public Medium
{
public:
	/** SIMULATOR must be installed, and at 0; it is at lead_ns() when this returns.
	 * std::invalid_argument names what is wrong in CONFIG, std::runtime_error a station that does
	 * not reach the access point. */
	ApMedium(const ApConfig &config, LabSimulator &simulator, Receiver receiver);

	/** On the air it is for the other end of PORT alone, also one for a group, as access points make
	 * of one for all one for each. */
	void send(size_t port, ns3::Ptr<ns3::Packet> payload, uint16_t ethertype,
		  ns3::Mac48Address source, ns3::Mac48Address destination) override;
	/** The end of the first frame on the air that carries data or answers such, or of the shortest
	 * that could follow the next event while anything is queued. */
	int64_t next_delivery_ns(int64_t next_event_ns) override;
	int64_t lead_ns() const override;
	int64_t room_bytes(size_t port) override;
	CounterNumbers counters(size_t node) override;
	size_t node_of(size_t port) const override;
	void write_summary(std::ostream &out) const override;

	bool is_bridged() const override
	{
		return true;
	}

	size_t nodes() const override
	{
		return devices.size();
	}

	ns3::Ptr<ns3::WifiNetDevice> device(size_t node) const
	{
		return devices[node];
	}

private:
	struct Port {
		size_t node;
		ns3::Mac48Address peer;
		double rate_bps; // of the last data PPDU that went there
	};

	/** What has come in and waits for the end of its PPDU, as a driver hears of it only then. */
	struct Held {
		size_t port;
		ns3::Ptr<const ns3::Packet> payload;
		uint16_t ethertype;
		ns3::Mac48Address source, destination;
	};

	size_t stations() const
	{
		return devices.size() - 1;
	}

	void install(const ApConfig &config);
	void watch(size_t node);
	void associate(LabSimulator &simulator) const;
	void agree(LabSimulator &simulator);
	size_t node_at(ns3::Mac48Address address) const;
	size_t port_between(size_t from, size_t to) const;
	ns3::Ptr<ns3::WifiMacQueue> queue_of(size_t node) const;
	double queued_us(const Port &port) const;
	void on_transmit(size_t from, ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector);
	void on_received(size_t to, ns3::Mac48Address sender, Held held);
	void hand_over(size_t from);

	Receiver receiver;
	ApConfig config;
	std::vector<ns3::Ptr<ns3::WifiNetDevice>> devices;
	std::vector<ns3::Ptr<ns3::MobilityModel>> places;
	std::vector<std::unique_ptr<ApCounters>> node_counters;
	ns3::Ptr<ns3::PropagationDelayModel> delay;
	std::vector<Port> ports;
	std::vector<int64_t> data_until_ns; // the end of the last data PPDU of each node, at its peer
	std::vector<std::vector<Held>> held; // of each sending node
	std::vector<uint64_t> ppdus_sent; // with data
	int64_t begin_ns; // of the kernels' time
	bool is_up = false; // what is received is for kernels
	// when frames on the air end that a kernel may notice, the first on top
	std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t> > ends;
};

#endif
