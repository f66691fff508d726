/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event loop for ns-3 that does not own time: somebody else's clock says how
 * far it may run, and it says when it next has something to do.
 *
 * ns-3's own loops either jump from event to event without asking (Default) or
 * sleep between them by the wall clock (Realtime). Neither can follow a kernel
 * whose clock jumps, nor lag behind it on purpose, as labmedium does.
 */
#ifndef LAB_SIMULATOR_H
#define LAB_SIMULATOR_H

#include <ns3/scheduler.h>
#include <ns3/simulator-impl.h>

#include <cstdint>
#include <list>

class LabSimulator : public ns3::SimulatorImpl
{
public:
	static ns3::TypeId GetTypeId();

	/** Make this the simulator of the process; return it. Once, before any other ns-3 call. */
	static ns3::Ptr<LabSimulator> install();

	/** Run every event up to UNTIL_NS, those that it brings about included; then it is UNTIL_NS. */
	void run_until(int64_t until_ns);
	/** Return when the next event is due, INT64_MAX if there is none. */
	int64_t next_event_ns();

	/* what ns-3 asks of a simulator */
	void Destroy() override;
	bool IsFinished() const override;
	void Stop() override;
	void Stop(const ns3::Time &delay) override;
	ns3::EventId Schedule(const ns3::Time &delay, ns3::EventImpl *event) override;
	void ScheduleWithContext(uint32_t context, const ns3::Time &delay, ns3::EventImpl *event) override;
	ns3::EventId ScheduleNow(ns3::EventImpl *event) override;
	ns3::EventId ScheduleDestroy(ns3::EventImpl *event) override;
	void Remove(const ns3::EventId &id) override;
	void Cancel(const ns3::EventId &id) override;
	bool IsExpired(const ns3::EventId &id) const override;
	void Run() override;
	ns3::Time Now() const override;
	ns3::Time GetDelayLeft(const ns3::EventId &id) const override;
	ns3::Time GetMaximumSimulationTime() const override;
	void SetScheduler(ns3::ObjectFactory factory) override;
	uint32_t GetSystemId() const override;
	uint32_t GetContext() const override;
	uint64_t GetEventCount() const override;

protected:
	void DoDispose() override;

private:
	ns3::Scheduler::Event insert(uint32_t context, const ns3::Time &delay, ns3::EventImpl *event);
	void run_next();

	ns3::Ptr<ns3::Scheduler> events;
	std::list<ns3::EventId> at_destroy;
	uint64_t now_ns = 0;
	uint32_t next_uid = ns3::EventId::UID::VALID;
	uint32_t current_uid = ns3::EventId::UID::INVALID;
	uint32_t current_context;
	uint64_t count = 0;
	bool stopped = false;
};

#endif
