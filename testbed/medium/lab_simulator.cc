// SPDX-License-Identifier: GPL-2.0-only
#include "lab_simulator.h"

#include <ns3/global-value.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include <limits>
#include <stdexcept>

using namespace ns3;

NS_OBJECT_ENSURE_REGISTERED(LabSimulator);

TypeId LabSimulator::GetTypeId()
{
	static TypeId tid =
		TypeId("LabSimulator").SetParent<SimulatorImpl>().AddConstructor<LabSimulator>();
	return tid;
}

Ptr<LabSimulator> LabSimulator::install()
{
	GlobalValue::Bind("SimulatorImplementationType", StringValue("LabSimulator"));
	auto simulator = DynamicCast<LabSimulator>(Simulator::GetImplementation());
	if (!simulator)
		throw std::logic_error("ns-3 has made a simulator of its own already");
	Simulator::Run(); // of nothing: until a first run ns-3 keeps a set of all Times that exist
	return simulator;
}

void LabSimulator::SetScheduler(ObjectFactory factory)
{
	auto scheduler = factory.Create<Scheduler>();
	while (events && !events->IsEmpty())
		scheduler->Insert(events->RemoveNext());
	events = scheduler;
	current_context = Simulator::NO_CONTEXT;
}

void LabSimulator::run_next()
{
	Scheduler::Event next = events->RemoveNext();

	if (!next.impl->IsCancelled()) {
		now_ns = next.key.m_ts;
		current_uid = next.key.m_uid;
		current_context = next.key.m_context;
		count++;
		next.impl->Invoke();
	}
	next.impl->Unref();
}

void LabSimulator::run_until(int64_t until_ns)
{
	uint64_t until = until_ns < 0 ? 0 : static_cast<uint64_t>(until_ns);

	while (!stopped && !events->IsEmpty() && events->PeekNext().key.m_ts <= until)
		run_next();
	if (!stopped && until > now_ns) {
		now_ns = until;
		current_uid = EventId::UID::INVALID; // no event of this instant has run
		current_context = Simulator::NO_CONTEXT;
	}
}

int64_t LabSimulator::next_event_ns()
{
	while (!events->IsEmpty()) {
		Scheduler::Event next = events->PeekNext();

		if (!next.impl->IsCancelled())
			return static_cast<int64_t>(next.key.m_ts);
		events->RemoveNext().impl->Unref();
	}
	return std::numeric_limits<int64_t>::max();
}

Scheduler::Event LabSimulator::insert(uint32_t context, const Time &delay, EventImpl *event)
{
	Scheduler::Event entry;

	if (delay.IsStrictlyNegative())
		throw std::logic_error("an event in the past");
	entry.impl = event;
	entry.key.m_ts = now_ns + static_cast<uint64_t>(delay.GetTimeStep());
	entry.key.m_context = context;
	entry.key.m_uid = next_uid++;
	events->Insert(entry);
	return entry;
}

EventId LabSimulator::Schedule(const Time &delay, EventImpl *event)
{
	Scheduler::Event entry = insert(current_context, delay, event);

	return EventId(event, entry.key.m_ts, entry.key.m_context, entry.key.m_uid);
}

void LabSimulator::ScheduleWithContext(uint32_t context, const Time &delay, EventImpl *event)
{
	insert(context, delay, event);
}

EventId LabSimulator::ScheduleNow(EventImpl *event)
{
	return Schedule(Time(0), event);
}

EventId LabSimulator::ScheduleDestroy(EventImpl *event)
{
	EventId id(Ptr<EventImpl>(event, false), now_ns, Simulator::NO_CONTEXT,
		   EventId::UID::DESTROY);

	at_destroy.push_back(id);
	return id;
}

void LabSimulator::Remove(const EventId &id)
{
	if (id.GetUid() == EventId::UID::DESTROY) {
		at_destroy.remove(id);
		return;
	}
	if (IsExpired(id))
		return;
	Scheduler::Event entry;
	entry.impl = id.PeekEventImpl();
	entry.key.m_ts = id.GetTs();
	entry.key.m_context = id.GetContext();
	entry.key.m_uid = id.GetUid();
	events->Remove(entry);
	entry.impl->Cancel();
	entry.impl->Unref();
}

void LabSimulator::Cancel(const EventId &id)
{
	if (!IsExpired(id))
		id.PeekEventImpl()->Cancel();
}

bool LabSimulator::IsExpired(const EventId &id) const
{
	EventImpl *event = id.PeekEventImpl();

	if (!event || event->IsCancelled())
		return true;
	if (id.GetUid() == EventId::UID::DESTROY) {
		for (const EventId &known : at_destroy) {
			if (known == id)
				return false;
		}
		return true;
	}
	return id.GetTs() < now_ns || (id.GetTs() == now_ns && id.GetUid() <= current_uid);
}

void LabSimulator::Run()
{
	stopped = false;
	while (!stopped && !events->IsEmpty())
		run_next();
}

void LabSimulator::Stop()
{
	stopped = true;
}

void LabSimulator::Stop(const Time &delay)
{
	Simulator::Schedule(delay, &Simulator::Stop);
}

bool LabSimulator::IsFinished() const
{
	return stopped || events->IsEmpty();
}

void LabSimulator::Destroy()
{
	while (!at_destroy.empty()) {
		EventId id = at_destroy.front();

		at_destroy.pop_front();
		if (!id.PeekEventImpl()->IsCancelled())
			id.PeekEventImpl()->Invoke();
	}
}

void LabSimulator::DoDispose()
{
	while (events && !events->IsEmpty())
		events->RemoveNext().impl->Unref();
	events = nullptr;
	SimulatorImpl::DoDispose();
}

Time LabSimulator::Now() const
{
	return TimeStep(now_ns);
}

Time LabSimulator::GetDelayLeft(const EventId &id) const
{
	return IsExpired(id) ? TimeStep(0) : TimeStep(id.GetTs() - now_ns);
}

Time LabSimulator::GetMaximumSimulationTime() const
{
	return TimeStep(std::numeric_limits<int64_t>::max());
}

uint32_t LabSimulator::GetSystemId() const
{
	return 0;
}

uint32_t LabSimulator::GetContext() const
{
	return current_context;
}

uint64_t LabSimulator::GetEventCount() const
{
	return count;
}
