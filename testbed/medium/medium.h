/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What labmedium asks of a wireless medium: frames go in and come out at ports, one
 * for each TAP device; what goes on between nodes is the model's (dsss.h, wifi_ap.h).
 */
#ifndef MEDIUM_H
#define MEDIUM_H

#include "counters.h"

#include <ns3/mobility-model.h>
#include <ns3/packet.h>
#include <ns3/wifi-net-device.h>

#include <cstdint>
#include <functional>
#include <ostream>

constexpr int64_t NEVER_NS = INT64_MAX;

/** Where a node is: at X, Y, or on a circle around it. */
struct Place {
	double x_m = 0, y_m = 0;
	double circle_radius_m = 0; // 0: it stays
	double circle_period_s = 0; // counterclockwise; it starts at X + radius, Y
};

/** Return a mobility model that is at PLACE, without events: a function of time since BEGIN_NS. */
ns3::Ptr<ns3::MobilityModel> at_place(const Place &place, int64_t begin_ns = 0);

class Medium
{
public:
	/** Gets a frame that came in for PORT (from 0). Source and destination are MAC addresses. */
	using Receiver =
		std::function<void(size_t port, const ns3::Packet &payload, uint16_t ethertype,
				   ns3::Mac48Address source, ns3::Mac48Address destination)>;

	virtual ~Medium() = default;

	/** Queue a frame from PORT, now. */
	virtual void send(size_t port, ns3::Ptr<ns3::Packet> payload, uint16_t ethertype,
			  ns3::Mac48Address source, ns3::Mac48Address destination) = 0;

	/** Say whether frames keep whatever addresses they have, as on the ports of a bridge. If not, a
	 * port's device has the address of its node, and source is that. */
	virtual bool is_bridged() const
	{
		return false;
	}

	/** Return before when nothing can happen that a kernel would notice, if no frame is queued
	 * meanwhile and the next event is due at NEXT_EVENT_NS. NEVER_NS: nothing is under way. */
	virtual int64_t next_delivery_ns(int64_t next_event_ns) = 0;

	/** Say how long the model has run before its users' time 0. */
	virtual int64_t lead_ns() const
	{
		return 0;
	}

	/** Say how many bytes more than are queued there (from the Ethernet header on) PORT may be given
	 * now, at most; -1: whatever comes, since it drops itself what it has no room for. */
	virtual int64_t room_bytes(size_t)
	{
		return -1;
	}

	virtual size_t nodes() const = 0;
	virtual CounterNumbers counters(size_t node) = 0;
	/** Return the node that PORT belongs to. */
	virtual size_t node_of(size_t port) const
	{
		return port;
	}

	/** Write what else there is to tell at the end, as members of a JSON object, each with a comma
	 * before it. */
	virtual void write_summary(std::ostream &) const
	{
	}

	/** Return the MAC address of node NODE (from 0): 00:00:00:00:00:01 and so on. */
	static ns3::Mac48Address address(size_t node);
};

#endif
