/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A DSSS PHY that decodes a frame by two thresholds, as ns-2 does: the signal must
 * be strong enough, and stronger than all interference together by the capture
 * ratio for as long as the frame lasts. The first frame locked on wins or is lost;
 * a stronger one that comes later is not taken instead.
 *
 * ns-3 (3.37) asks no error model about DSSS rates: its formula is built in, and by
 * that frames of equal power survive each other now and then.
 */
#ifndef THRESHOLD_PHY_H
#define THRESHOLD_PHY_H

#include <ns3/dsss-phy.h>
#include <ns3/wifi-psdu.h>
#include <ns3/yans-wifi-phy.h>

#include <cstdint>
#include <functional>
#include <vector>

class ThresholdDsssPhy : public ns3::DsssPhy
{
public:
	using OnDecoded = std::function<void(const ns3::WifiPsdu &, const ns3::WifiTxVector &)>;

	/** DECODABLE_W: the least power that is decoded. CAPTURE: the ratio, not in dB. */
	ThresholdDsssPhy(double decodable_w, double capture);

	/** Call this with how long it lasts for each signal that arrives, whatever comes of it. */
	void on_arrival(std::function<void(ns3::Time)> callback);

	/** Call this for each frame decoded, whosever, before the MAC has it. */
	void on_decoded(OnDecoded callback);

	/** Call this at the end of each frame that was sensed, and of which not even the header was
	 * decoded. */
	void on_unread(std::function<void()> callback);

	/** Return how many frames strong enough have ended without being decoded. */
	uint64_t lost();

private:
	struct Arrival {
		uint64_t frame;
		double power_w;
		ns3::Time end;
		double interference_w; // the most that there was at once
		bool decoded;
	};

	void StartReceivePreamble(ns3::Ptr<const ns3::WifiPpdu> ppdu,
				  ns3::RxPowerWattPerChannelBand &powers,
				  ns3::Time duration) override;
	void NotifyCcaBusy(const ns3::Ptr<const ns3::WifiPpdu> ppdu, ns3::Time duration,
			   ns3::WifiChannelListType channel) override;
	PhyFieldRxStatus DoEndReceiveField(ns3::WifiPpduField field,
					   ns3::Ptr<ns3::Event> event) override;
	ns3::Time DoStartReceivePayload(ns3::Ptr<ns3::Event> event) override;
	void RxPayloadSucceeded(ns3::Ptr<const ns3::WifiPsdu> psdu, ns3::RxSignalInfo signal,
				const ns3::WifiTxVector &vector, uint16_t station,
				const std::vector<bool> &status) override;

	void forget_ended();
	Arrival *find(uint64_t frame);
	bool is_decodable(const Arrival *arrival) const;

	double decodable_w, capture;
	std::function<void(ns3::Time)> arrival_callback;
	OnDecoded decoded_callback;
	std::function<void()> unread_callback;
	std::vector<Arrival> arrivals; // on the air here
	uint64_t receiving = 0; // the frame locked on
	uint64_t lost_count = 0;
};

/** A station's radio that has this PHY for its DSSS rates. */
class ThresholdWifiPhy : public ns3::YansWifiPhy
{
public:
	static ns3::TypeId GetTypeId();

	void ConfigureStandard(ns3::WifiStandard standard) override;

	ns3::Ptr<ThresholdDsssPhy> dsss() const
	{
		return entity;
	}

private:
	double decodable_dbm, capture_db;
	ns3::Ptr<ThresholdDsssPhy> entity;
};

#endif
