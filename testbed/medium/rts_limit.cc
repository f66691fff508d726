// SPDX-License-Identifier: GPL-2.0-only
#include "rts_limit.h"

#include <ns3/uinteger.h>

using namespace ns3;

NS_OBJECT_ENSURE_REGISTERED(RtsLimitManager);

TypeId RtsLimitManager::GetTypeId()
{
	static TypeId tid = TypeId("RtsLimitManager")
				    .SetParent<ConstantRateWifiManager>()
				    .AddConstructor<RtsLimitManager>()
				    .AddAttribute("RtsAttempts", "How often an RTS is tried",
						  UintegerValue(7),
						  MakeUintegerAccessor(&RtsLimitManager::most_attempts),
						  MakeUintegerChecker<uint32_t>(1));
	return tid;
}

void RtsLimitManager::DoReportRtsFailed(WifiRemoteStation *)
{
	failed++;
}

void RtsLimitManager::DoReportRtsOk(WifiRemoteStation *, double, WifiMode, double)
{
	failed = 0;
}

void RtsLimitManager::DoReportFinalRtsFailed(WifiRemoteStation *)
{
	failed = 0;
}

bool RtsLimitManager::DoNeedRetransmission(WifiRemoteStation *, Ptr<const Packet>, bool normally)
{
	return normally && failed < most_attempts;
}
