/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wireless medium: IEEE 802.11b stations (DSSS, DCF, ad hoc) of ns-3 on one
 * channel. docs/medium.md has the model and its constants.
 */
#ifndef MEDIUM_H
#define MEDIUM_H

#include "counters.h"

#include <ns3/mobility-model.h>
#include <ns3/propagation-delay-model.h>
#include <ns3/wifi-net-device.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

/** Where a node is: at X, Y, or on a circle around it. */
struct Place {
	double x_m = 0, y_m = 0;
	double circle_radius_m = 0; // 0: it stays
	double circle_period_s = 0; // counterclockwise; it starts at X + radius, Y
};

struct Station {
	Place place;
	uint32_t ipv4 = 0; // host order; 0: none
};

struct MediumConfig {
	double rate_mbps = 2; // of data frames: 1 or 2
	double control_rate_mbps = 1; // of RTS and broadcast frames; answers go by the basic rates
	uint32_t rts_threshold_bytes = 65535; // longer frames (MAC header and FCS counted) use RTS
	uint32_t short_retry_limit = 7; // attempts of a frame that uses no RTS
	uint32_t rts_retry_limit = 7; // attempts of an RTS
	uint32_t long_retry_limit = 4; // attempts of a frame after RTS
	uint32_t queue_pkts = 50; // the interface queue, drop-tail
	double range_m = 300; // a frame can be decoded up to here, if nothing interferes
	double carrier_sense_m = 550; // and is sensed up to here
	double loss_exponent = 4; // of the path loss
	double capture_db = 10; // signal over interference that decodes a frame
	bool eifs_after_sensed = false; // lock on, and EIFS after, what is only sensed
	uint32_t seed = 1;
	std::vector<Station> stations;
};

class Medium
{
public:
	/** Gets a frame that node TO (from 0) has received. Source and destination are MAC addresses. */
	using Receiver =
		std::function<void(size_t to, const ns3::Packet &payload, uint16_t ethertype,
				   ns3::Mac48Address source, ns3::Mac48Address destination)>;

	/** LabSimulator must be installed. std::invalid_argument names what is wrong in CONFIG. */
	Medium(const MediumConfig &config, Receiver receiver);

	/** Queue a frame at node FROM, now. */
	void send(size_t from, ns3::Ptr<ns3::Packet> payload, uint16_t ethertype,
		  ns3::Mac48Address destination);

	/** Return before when no frame can be received, if none is queued meanwhile and the next
	 * event is due at NEXT_EVENT_NS: the end of the first data frame on the air, or of one that
	 * waits, if it started then or as soon as its node senses nothing. INT64_MAX: none is there. */
	int64_t next_delivery_ns(int64_t next_event_ns);

	CounterNumbers counters(size_t node);

	size_t size() const
	{
		return devices.size();
	}

	ns3::Ptr<ns3::WifiNetDevice> device(size_t node) const
	{
		return devices[node];
	}

	/** Return the MAC address of node NODE (from 0): 00:00:00:00:00:01 and so on. */
	static ns3::Mac48Address address(size_t node);

private:
	int64_t next_airtime_ns(size_t node);
	void on_transmit(size_t from, ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector);

	Receiver receiver;
	uint32_t queue_pkts;
	std::vector<ns3::Ptr<ns3::WifiNetDevice>> devices;
	std::vector<ns3::Ptr<ns3::MobilityModel>> places;
	std::vector<std::unique_ptr<NodeCounters>> node_counters;
	ns3::Ptr<ns3::PropagationDelayModel> delay;
	std::vector<std::deque<int64_t>> airtimes; // of the frames in each node's queue, at least
	ns3::WifiTxVector fastest; // that any frame can have
	// when data frames on the air end where they are addressed to, the first on top
	std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t> > deliveries;
};

#endif
