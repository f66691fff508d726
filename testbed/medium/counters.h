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

/** Watches one node's MAC and PHY, from when watch() is called until the simulator is destroyed. What
 * a PHY tells besides is for those who know which one it is. */
class NodeCounters : public ns3::WifiPhyListener
{
public:
	/** IPV4: the node's address in host order, 0 if it has none; tells its packets from others'. */
	virtual void watch(ns3::Ptr<ns3::WifiMac> watched, uint32_t address);

	/** Return what there is at this instant. */
	CounterNumbers read();

	/** Begin anew from 0. */
	void clear();

	void packet_received()
	{
		counts.received++;
	}

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

protected:
	virtual uint64_t collisions() const = 0;
	virtual uint64_t queue_pkts() const = 0;
	void account();
	uint64_t nav_until_ns() const;
	/** Energy has come in that lasts for DURATION. */
	void sense(ns3::Time duration);
	/** A frame of others was decoded: it sets the NAV. */
	void decoded(const ns3::WifiMacHeader &header, const ns3::WifiTxVector &vector);

	ns3::Ptr<ns3::WifiMac> mac;
	ns3::Ptr<ns3::WifiPhy> phy;
	Counters counts{};
	uint64_t transmit_until_ns = 0;
	uint64_t sense_until_ns = 0;

private:
	void receive_ended();
	void on_sent(ns3::WifiConstPsduMap psdus, ns3::WifiTxVector vector, double power_w);
	void on_acked(ns3::Ptr<const ns3::WifiMpdu> mpdu);
	void on_dropped(ns3::WifiMacDropReason reason, ns3::Ptr<const ns3::WifiMpdu> mpdu);
	void on_rts_failed(ns3::Mac48Address to);
	void on_data_failed(ns3::Mac48Address to);

	uint32_t ipv4 = 0;
	uint64_t accounted_ns = 0; // the times in counts cover the time up to this
	bool receiving = false;
	uint64_t nav_end_ns = 0;
	uint64_t nav_check_ns = 0; // a NAV set by an RTS ends here if nothing is heard by then
};

/** Those of a station with ThresholdWifiPhy, whose hooks say when signals begin. */
class DsssCounters : public NodeCounters
{
public:
	void watch(ns3::Ptr<ns3::WifiMac> watched, uint32_t address) override;

	/** Return until when the node cannot start a data frame, for all that is known: it transmits, or
	 * senses what others do, unless that began so recently that it may have decided before. */
	uint64_t held_back_until_ns() const;

protected:
	uint64_t collisions() const override;
	uint64_t queue_pkts() const override;

private:
	void on_arrival(ns3::Time duration);

	ns3::Ptr<ThresholdWifiPhy> threshold_phy;
	uint64_t last_arrival_ns = 0;
};

#endif
