/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constant rates, and a limit to how often an RTS is tried.
 *
 * ns-3 (3.37) counts RTS frames without an answer but never holds the count against
 * its limit for them: a packet longer than the RTS threshold was sent for ever.
 */
#ifndef RTS_LIMIT_H
#define RTS_LIMIT_H

#include <ns3/constant-rate-wifi-manager.h>

#include <cstdint>

class RtsLimitManager : public ns3::ConstantRateWifiManager
{
public:
	static ns3::TypeId GetTypeId();

private:
	void DoReportRtsFailed(ns3::WifiRemoteStation *station) override;
	void DoReportRtsOk(ns3::WifiRemoteStation *station, double cts_snr, ns3::WifiMode cts_mode,
			   double rts_snr) override;
	void DoReportFinalRtsFailed(ns3::WifiRemoteStation *station) override;
	bool DoNeedRetransmission(ns3::WifiRemoteStation *station, ns3::Ptr<const ns3::Packet> packet,
				  bool normally) override;

	uint32_t most_attempts;
	uint32_t failed = 0; // in a row; a station without QoS has one packet in hand at a time
};

#endif
