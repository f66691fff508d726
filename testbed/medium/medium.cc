// SPDX-License-Identifier: GPL-2.0-only
#include "medium.h"

#include <ns3/simulator.h>

#include <cmath>

using namespace ns3;

namespace
{

/* A circle without events: the position is a function of time. */
class CircleMobility : public MobilityModel
{
public:
	static TypeId GetTypeId()
	{
		static TypeId tid = TypeId("CircleMobility")
					    .SetParent<MobilityModel>()
					    .AddConstructor<CircleMobility>();
		return tid;
	}

	Place place;
	int64_t begin_ns = 0;

private:
	double angle() const
	{
		if (place.circle_radius_m == 0)
			return 0;
		double since_s = (Simulator::Now().GetNanoSeconds() - begin_ns) * 1e-9;
		double turns = since_s / place.circle_period_s;
		return 2 * M_PI * (turns - std::floor(turns));
	}

	Vector DoGetPosition() const override
	{
		return Vector(place.x_m + place.circle_radius_m * std::cos(angle()),
			      place.y_m + place.circle_radius_m * std::sin(angle()), 0);
	}

	void DoSetPosition(const Vector &position) override
	{
		place.x_m = position.x;
		place.y_m = position.y;
	}

	Vector DoGetVelocity() const override
	{
		if (place.circle_radius_m == 0)
			return Vector();
		double speed = 2 * M_PI * place.circle_radius_m / place.circle_period_s;
		return Vector(-speed * std::sin(angle()), speed * std::cos(angle()), 0);
	}
};

NS_OBJECT_ENSURE_REGISTERED(CircleMobility);

} // namespace

Ptr<MobilityModel> at_place(const Place &place, int64_t begin_ns)
{
	auto mobility = CreateObject<CircleMobility>();

	mobility->place = place;
	mobility->begin_ns = begin_ns;
	return mobility;
}

Mac48Address Medium::address(size_t node)
{
	uint8_t bytes[6] = { 0, 0, 0, 0, 0, static_cast<uint8_t>(node + 1) };
	Mac48Address result;

	result.CopyFrom(bytes);
	return result;
}
