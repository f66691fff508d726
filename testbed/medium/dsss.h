/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IEEE 802.11b stations (DSSS, DCF, ad hoc) of ns-3 on one channel. docs/medium.md has
 * the model and its constants.
 */
#ifndef DSSS_H
#define DSSS_H

#include "counters.h"
#include "medium.h"

#include <ns3/propagation-delay-model.h>

#include <deque>
#include <memory>
#include <queue>
#include <vector>

struct Station {
	Place place;
	uint32_t ipv4 = 0; // host order; 0: none
};

struct DsssConfig {
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

class DsssMedium : public Medium
{
public:
	/** LabSimulator must be installed. std::invalid_argument names what is wrong in CONFIG. */
	DsssMedium(const DsssConfig &config, Receiver receiver);

	void send(size_t from, ns3::Ptr<ns3::Packet> payload, uint16_t ethertype, ns3::Mac48Address,
		  ns3::Mac48Address destination) override;
	/** The end of the first data frame on the air, or of one that waits, if it started with the next
	 * event or as soon as its node senses nothing. */
	int64_t next_delivery_ns(int64_t next_event_ns) override;
	CounterNumbers counters(size_t node) override;

	size_t nodes() const override
	{
		return devices.size();
	}

	ns3::Ptr<ns3::WifiNetDevice> device(size_t node) const
	{
		return devices[node];
	}

private:
	int64_t next_airtime_ns(size_t node);
	void on_transmit(size_t from, ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector);

	Receiver receiver;
	uint32_t queue_pkts;
	std::vector<ns3::Ptr<ns3::WifiNetDevice>> devices;
	std::vector<ns3::Ptr<ns3::MobilityModel>> places;
	std::vector<std::unique_ptr<DsssCounters>> node_counters;
	ns3::Ptr<ns3::PropagationDelayModel> delay;
	std::vector<std::deque<int64_t>> airtimes; // of the frames in each node's queue, at least
	ns3::WifiTxVector fastest; // that any frame can have
	// when data frames on the air end where they are addressed to, the first on top
	std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t> > deliveries;
};

#endif
