// SPDX-License-Identifier: GPL-2.0-only
#include "threshold_phy.h"

#include <ns3/double.h>
#include <ns3/interference-helper.h>
#include <ns3/simulator.h>
#include <ns3/wifi-ppdu.h>
#include <ns3/wifi-utils.h>

#include <algorithm>

using namespace ns3;

NS_OBJECT_ENSURE_REGISTERED(ThresholdWifiPhy);

ThresholdDsssPhy::ThresholdDsssPhy(double least_w, double ratio)
	: decodable_w(least_w), capture(ratio)
{
}

void ThresholdDsssPhy::on_arrival(std::function<void(Time)> callback)
{
	arrival_callback = std::move(callback);
}

void ThresholdDsssPhy::on_decoded(OnDecoded callback)
{
	decoded_callback = std::move(callback);
}

void ThresholdDsssPhy::on_unread(std::function<void()> callback)
{
	unread_callback = std::move(callback);
}

uint64_t ThresholdDsssPhy::lost()
{
	forget_ended();
	return lost_count;
}

/* One that ends at this very instant may still be about to be decoded. */
void ThresholdDsssPhy::forget_ended()
{
	auto ended = [this](const Arrival &arrival) {
		if (arrival.end >= Simulator::Now())
			return false;
		lost_count += !arrival.decoded && arrival.power_w >= decodable_w;
		return true;
	};

	arrivals.erase(std::remove_if(arrivals.begin(), arrivals.end(), ended), arrivals.end());
}

ThresholdDsssPhy::Arrival *ThresholdDsssPhy::find(uint64_t frame)
{
	for (Arrival &arrival : arrivals) {
		if (arrival.frame == frame)
			return &arrival;
	}
	return nullptr;
}

bool ThresholdDsssPhy::is_decodable(const Arrival *arrival) const
{
	return arrival && arrival->power_w >= decodable_w &&
	       arrival->power_w >= capture * arrival->interference_w;
}

void ThresholdDsssPhy::StartReceivePreamble(Ptr<const WifiPpdu> ppdu,
					    RxPowerWattPerChannelBand &powers, Time duration)
{
	Time now = Simulator::Now();
	double all_w = powers.begin()->second;

	if (arrival_callback)
		arrival_callback(duration);
	forget_ended();
	arrivals.push_back({ ppdu->GetUid(), all_w, now + duration, 0, false });
	for (size_t i = 0; i + 1 < arrivals.size(); i++) {
		if (arrivals[i].end > now)
			all_w += arrivals[i].power_w;
	}
	for (Arrival &arrival : arrivals) {
		if (arrival.end > now)
			arrival.interference_w =
				std::max(arrival.interference_w, all_w - arrival.power_w);
	}
	DsssPhy::StartReceivePreamble(ppdu, powers, duration);
}

/* When a PHY header begins ns-3 (3.37) says that the medium is busy until it ends, and that word is
 * its last: what else is on the air, and the rest of the frame if the header is not decoded, would not
 * be sensed. So say until when all that is on the air lasts. */
void ThresholdDsssPhy::NotifyCcaBusy(const Ptr<const WifiPpdu> ppdu, Time duration,
				     WifiChannelListType channel)
{
	for (const Arrival &arrival : arrivals)
		duration = std::max(duration, arrival.end - Simulator::Now());
	DsssPhy::NotifyCcaBusy(ppdu, duration, channel);
}

PhyEntity::PhyFieldRxStatus ThresholdDsssPhy::DoEndReceiveField(WifiPpduField field,
								Ptr<Event> event)
{
	if (field != WIFI_PPDU_FIELD_NON_HT_HEADER)
		return PhyEntity::DoEndReceiveField(field, event);
	const Arrival *arrival = find(event->GetPpdu()->GetUid());
	if (is_decodable(arrival))
		return PhyFieldRxStatus(true);
	if (unread_callback && arrival)
		Simulator::Schedule(arrival->end - Simulator::Now(), [this]() { unread_callback(); });
	return PhyFieldRxStatus(false, L_SIG_FAILURE, ABORT);
}

Time ThresholdDsssPhy::DoStartReceivePayload(Ptr<Event> event)
{
	receiving = event->GetPpdu()->GetUid();
	return DsssPhy::DoStartReceivePayload(event);
}

void ThresholdDsssPhy::RxPayloadSucceeded(Ptr<const WifiPsdu> psdu, RxSignalInfo signal,
					  const WifiTxVector &vector, uint16_t station,
					  const std::vector<bool> &status)
{
	Arrival *arrival = find(receiving);

	if (!is_decodable(arrival)) {
		RxPayloadFailed(psdu, signal.snr, vector);
		return;
	}
	arrival->decoded = true;
	if (decoded_callback)
		decoded_callback(*psdu, vector);
	DsssPhy::RxPayloadSucceeded(psdu, signal, vector, station, status);
}

TypeId ThresholdWifiPhy::GetTypeId()
{
	static TypeId tid =
		TypeId("ThresholdWifiPhy")
			.SetParent<YansWifiPhy>()
			.AddConstructor<ThresholdWifiPhy>()
			.AddAttribute("DecodableDbm", "Least power that is decoded",
				      DoubleValue(-80),
				      MakeDoubleAccessor(&ThresholdWifiPhy::decodable_dbm),
				      MakeDoubleChecker<double>())
			.AddAttribute("CaptureDb", "Least signal over interference that decodes",
				      DoubleValue(10),
				      MakeDoubleAccessor(&ThresholdWifiPhy::capture_db),
				      MakeDoubleChecker<double>());
	return tid;
}

void ThresholdWifiPhy::ConfigureStandard(WifiStandard standard)
{
	YansWifiPhy::ConfigureStandard(standard);
	if (m_phyEntities.empty() || entity) // it calls itself once there is a channel
		return;
	entity = Create<ThresholdDsssPhy>(DbmToW(decodable_dbm), DbToRatio(capture_db));
	entity->SetOwner(this);
	m_phyEntities[WIFI_MOD_CLASS_DSSS] = entity;
	m_phyEntities[WIFI_MOD_CLASS_HR_DSSS] = entity;
}
