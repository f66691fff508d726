/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one node did and heard on the medium, from ns-3's listeners and traces.
 *
 * A node is busy, as channel busyness ratios have it (Zhai, Chen, Fang 2007),
 * while it transmits, receives, senses energy that it cannot lock on, or its NAV
 * says that others have the medium: transmit + receive + sense + nav. The rest of
 * the time is idle: interframe spaces, backoff, nothing to send.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "threshold_phy.h"

#include <ns3/packet.h>
#include <ns3/wifi-mac.h>
#include <ns3/wifi-phy-listener.h>
#include <ns3/wifi-phy.h>

#include <array>
#include <cstdint>

/** One value of each counter since the start, in the order in which they are written and sent. */
struct Counters {
	uint64_t busy_ns; // the next four together
	uint64_t transmit_ns;
	uint64_t receive_ns; // payload of frames it locked on, whosever
	uint64_t sense_ns; // preambles, and energy that it did not lock on
	uint64_t nav_ns; // idle by its own senses, reserved by a NAV
	uint64_t data_sent; // data frames on the air, each retry counts
	uint64_t rts_sent;
	uint64_t cts_missed; // RTS without an answer
	uint64_t ack_missed; // data frames without an answer
	uint64_t delivered; // packets acknowledged by the next hop, broadcasts not counted
	uint64_t delivered_bytes; // of these, from the LLC header on
	uint64_t received; // packets handed to the node's kernel
	uint64_t collisions; // frames from nodes in range that it could not decode
	uint64_t retry_drops; // packets given up at a retry limit
	uint64_t queue_drops; // packets of others dropped by the full interface queue
	uint64_t own_queue_drops; // packets that the node itself sent, likewise
	uint64_t queue_pkts; // now in the interface queue
};

constexpr size_t COUNTERS = sizeof(Counters) / sizeof(uint64_t);
using CounterNumbers = std::array<uint64_t, COUNTERS>;
extern const std::array<const char *, COUNTERS> counter_names;

/** Watches one node's MAC and PHY, from when watch() is called until the simulator is destroyed. */
class NodeCounters : public ns3::WifiPhyListener
{
public:
	/** IPV4: the node's address in host order, 0 if it has none; tells its packets from others'. */
	void watch(ns3::Ptr<ns3::WifiMac> watched, uint32_t address);

	/** Return what there is at this instant. */
	CounterNumbers read();

	void packet_received()
	{
		counts.received++;
	}

	/** Return until when the node cannot start a data frame, for all that is known: it transmits, or
	 * senses what others do, unless that began so recently that it may have decided before. */
	uint64_t held_back_until_ns() const;

	/** The interface queue had no room for PACKET, of ETHERTYPE. */
	void packet_refused(const ns3::Packet &packet, uint16_t ethertype);

	/* WifiPhyListener */
	void NotifyRxStart(ns3::Time duration) override;
	void NotifyRxEndOk() override;
	void NotifyRxEndError() override;
	void NotifyTxStart(ns3::Time duration, double power_dbm) override;
	void NotifyCcaBusyStart(ns3::Time, ns3::WifiChannelListType,
				const std::vector<ns3::Time> &) override
	{
	}
	void NotifySwitchingStart(ns3::Time) override
	{
	}
	void NotifySleep() override
	{
	}
	void NotifyOff() override
	{
	}
	void NotifyWakeup() override
	{
	}
	void NotifyOn() override
	{
	}

private:
	void account();
	uint64_t nav_until_ns() const;
	void receive_ended();
	void on_arrival(ns3::Time duration);
	void on_sent(ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector, double power_w);
	void on_decoded(const ns3::WifiPsdu &psdu, const ns3::WifiTxVector &vector);
	void on_acked(ns3::Ptr<const ns3::WifiMpdu> mpdu);
	void on_dropped(ns3::WifiMacDropReason reason, ns3::Ptr<const ns3::WifiMpdu> mpdu);
	void on_rts_failed(ns3::Mac48Address to);
	void on_data_failed(ns3::Mac48Address to);

	ns3::Ptr<ns3::WifiMac> mac;
	ns3::Ptr<ThresholdWifiPhy> phy;
	uint32_t ipv4 = 0;
	Counters counts{};

	uint64_t accounted_ns = 0; // the times in counts cover [0, this)
	uint64_t transmit_until_ns = 0;
	uint64_t sense_until_ns = 0;
	uint64_t last_arrival_ns = 0;
	bool receiving = false;
	uint64_t nav_end_ns = 0;
	uint64_t nav_check_ns = 0; // a NAV set by an RTS ends here if nothing is heard by then
};

#endif
