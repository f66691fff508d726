// SPDX-License-Identifier: GPL-2.0-only
/*
 * labmedium - a wireless medium between TAP devices; --help and docs/medium.md.
 *
 * The model's clock follows the kernel's, but lags behind it on purpose: what
 * goes on between stations, slot by slot, matters to no kernel until a frame is
 * received. So the process sleeps until the first instant at which one of those
 * that wait could be, or until a node sends, and only then lets the model catch up. In virtual time
 * each wake-up costs switches between kernels; that is what makes this cheap.
 *
 * A TAP device pushes nothing back: it takes what comes. Where the medium says how much it takes
 * (an access point's), the queueing discipline labgate of the device is told so by frames, and what
 * is more waits in the kernel's queue, as it does before a driver.
 */
#include "dsss.h"
#include "lab_simulator.h"
#include "medium.h"
#include "options.h"
#include "taps.h"
#include "wifi_ap.h"

#include <ns3/simulator.h>

#include <csignal>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace
{

constexpr size_t ETHERNET_HEADER_BYTES = 14;
constexpr int MTU_MAX = 2304 - 8; // an MSDU without its LLC header (IEEE 802.11-2007 7.1.2)
constexpr size_t FRAME_ROOM_BYTES = 1 << 16; // more than is taken: what is longer is not cut
constexpr uint16_t ETHERTYPE_MIN = 0x600; // below: a length
constexpr uint16_t ETHERTYPE_SURVEY = 0x88b5; // IEEE 802 local experimental EtherType 1
constexpr uint16_t SURVEY_VERSION = 1;
constexpr uint16_t ETHERTYPE_GATE = 0x88b6; // and 2
constexpr uint16_t GATE_VERSION = 1;
// where the gate is: of all addresses only this kind passes a bridge that the device is a port of, and
// goes no further (IEEE 802.1Q, nearest bridge)
const uint8_t GATE_ADDRESS[] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e };
constexpr int64_t SECOND_NS = 1'000'000'000;

volatile sig_atomic_t stop_asked;

int64_t monotonic_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

[[noreturn]] void fail(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

void put(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = static_cast<uint8_t>(value >> (8 * (bytes - 1 - i)));
}

/* How much the kernel may hand over at a port, in bytes since the start. */
struct Gate {
	uint64_t taken = 0; // that it has handed over
	uint64_t allowed = 0;
	uint64_t room = 0; // when that was told
};

class LiveMedium
{
public:
	explicit LiveMedium(const Options &given);
	void run();

private:
	void wait(int64_t until_ns);
	void catch_up();
	void run_model();
	std::unique_ptr<Medium> make_medium();
	bool is_gated();
	void read_tap(size_t port);
	bool read_frame(size_t port);
	void tell_rooms();
	void tell_room(size_t port);
	void check_address(size_t port) const;
	void watch_node(size_t port, const std::string &path);
	void node_ended(size_t port);
	void on_frame(size_t port, const uint8_t *frame, size_t length);
	void on_received(size_t port, const ns3::Packet &payload, uint16_t ethertype,
			 ns3::Mac48Address source, ns3::Mac48Address destination);
	void answer_survey(size_t port);
	void sample();
	void write_summary();

	Options options;
	ns3::Ptr<LabSimulator> simulator;
	std::unique_ptr<Medium> medium;
	std::vector<TapDevice> taps;
	std::vector<Gate> gates; // of each port, where the medium says how much it takes
	std::ofstream samples;
	int poll_fd;
	sigset_t signals_while_waiting;
	int64_t start_ns;
	int64_t now_ns = 0; // by the medium's clock, when it last looked
	int64_t late_max_ns = 0; // the most by which a kernel got a frame too late
	uint64_t wakeups = 0;
	uint64_t early_frames = 0; // sent before the medium's time began: lost
	uint64_t long_frames = 0; // longer than 802.11 carries: lost
	uint64_t refused_frames = 0; // received, but the kernel had no room
	size_t ports_gone = 0;
};

LiveMedium::LiveMedium(const Options &given)
	: options(given), simulator(LabSimulator::install()), medium(make_medium())
{
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poll_fd < 0)
		fail("epoll_create1");
	for (size_t i = 0; i < options.taps.size(); i++) {
		epoll_event event{};

		taps.emplace_back(options.taps[i].namespace_path, options.taps[i].device, MTU_MAX);
		check_address(i);
		event.events = EPOLLIN;
		event.data.u32 = static_cast<uint32_t>(i);
		if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, taps[i].descriptor(), &event))
			fail("epoll_ctl");
	}
	for (size_t i = 0; i < taps.size(); i++)
		watch_node(i, options.taps[i].namespace_path);
	if (!options.counters_file.empty()) {
		samples.open(options.counters_file);
		samples << "time_s,node";
		for (const char *name : counter_names)
			samples << ',' << name;
		samples << '\n';
		ns3::Simulator::Schedule(ns3::Seconds(0), &LiveMedium::sample, this);
	}
	run_model(); // stations come up
	if (is_gated())
		gates.resize(taps.size());
	start_ns = options.start_ns < 0 ? monotonic_ns() : options.start_ns;
	now_ns = monotonic_ns() - start_ns;
}

std::unique_ptr<Medium> LiveMedium::make_medium()
{
	Medium::Receiver receiver = [this](size_t port, const ns3::Packet &payload,
					   uint16_t ethertype, ns3::Mac48Address source,
					   ns3::Mac48Address destination) {
		on_received(port, payload, ethertype, source, destination);
	};

	if (options.has_ap())
		return std::make_unique<ApMedium>(options.ap, *simulator, receiver);
	return std::make_unique<DsssMedium>(options.medium, receiver);
}

bool LiveMedium::is_gated()
{
	return medium->room_bytes(0) >= 0;
}

/* Signals end the wait and are otherwise held back, so that none is missed. */
void prepare_signals(sigset_t *while_waiting)
{
	struct sigaction action = {};
	sigset_t held;

	action.sa_handler = [](int) { stop_asked = 1; };
	sigemptyset(&held);
	for (int number : { SIGTERM, SIGINT }) {
		sigaddset(&held, number);
		sigaction(number, &action, nullptr);
	}
	sigprocmask(SIG_BLOCK, &held, while_waiting);
	sigdelset(while_waiting, SIGTERM);
	sigdelset(while_waiting, SIGINT);
}

void LiveMedium::run()
{
	prctl(PR_SET_TIMERSLACK, 1);
	prepare_signals(&signals_while_waiting);
	if (options.ready_fd >= 0 && write(options.ready_fd, "ready\n", 6) != 6)
		fail("--ready-fd");
	tell_rooms();
	while (!stop_asked && ports_gone < taps.size()) // with the last node nobody is left
		wait(medium->next_delivery_ns(simulator->next_event_ns()));
	catch_up();
	samples.flush();
	write_summary();
	if (!options.counters_file.empty() && !samples)
		fail("cannot write the counters");
}

/* Sleep until the model's time is UNTIL_NS or a node sends; then let the model catch up. */
void LiveMedium::wait(int64_t until_ns)
{
	constexpr int MOST = 64;
	epoll_event ready[MOST];
	int64_t left_ns = 3600 * SECOND_NS;

	if (until_ns < NEVER_NS)
		left_ns = std::clamp<int64_t>(until_ns - medium->lead_ns() - now_ns, 0, left_ns);
	if (!gates.empty() && now_ns < 0) // they open at 0
		left_ns = std::min(left_ns, -now_ns);
	timespec timeout = { left_ns / SECOND_NS, left_ns % SECOND_NS };
	int count = epoll_pwait2(poll_fd, ready, MOST, &timeout, &signals_while_waiting);
	if (count < 0 && errno != EINTR)
		fail("epoll_pwait2");
	wakeups++;
	catch_up();
	for (int i = 0; i < count; i++) {
		if (ready[i].data.u32 < taps.size())
			read_tap(ready[i].data.u32);
		else
			node_ended(ready[i].data.u32 - taps.size());
	}
	tell_rooms();
	if (count > 0 || !gates.empty()) // what was just queued may be on the air at once
		run_model();
}

/* From the medium's time 0 on. */
void LiveMedium::tell_rooms()
{
	for (size_t port = 0; port < gates.size() && now_ns >= 0; port++)
		tell_room(port);
}

/* Let the model do all that is due. */
void LiveMedium::run_model()
{
	simulator->run_until(ns3::Simulator::Now().GetNanoSeconds());
}

void LiveMedium::catch_up()
{
	now_ns = monotonic_ns() - start_ns;
	simulator->run_until(now_ns + (now_ns < 0 ? 0 : medium->lead_ns()));
}

void LiveMedium::read_tap(size_t port)
{
	// one, as there is seldom more: the next wait returns at once if there is
	while (read_frame(port) && !gates.empty())
		;
	if (taps[port].is_gone() &&
	    !epoll_ctl(poll_fd, EPOLL_CTL_DEL, taps[port].descriptor(), nullptr))
		ports_gone++;
}

bool LiveMedium::read_frame(size_t port)
{
	uint8_t frame[FRAME_ROOM_BYTES];
	size_t length = taps[port].read(frame, sizeof(frame));

	if (!length)
		return false;
	if (!gates.empty())
		gates[port].taken += length;
	on_frame(port, frame, length);
	return true;
}

/* Tell the gate of PORT once the kernel has used up half of what it was told last: version (u16), 0
 * (u16), how many bytes it may have handed over since the start (u64). What waits there comes at
 * once. */
void LiveMedium::tell_room(size_t port)
{
	uint8_t frame[ETHERNET_HEADER_BYTES + 12] = {};
	uint8_t *at = frame + ETHERNET_HEADER_BYTES;
	Gate &gate = gates[port];

	if (gate.allowed >= gate.taken + std::max<uint64_t>(gate.room / 2, 1))
		return;
	auto room = static_cast<uint64_t>(medium->room_bytes(port));
	if (!room || gate.taken + room <= gate.allowed)
		return;
	gate.allowed = gate.taken + room;
	gate.room = room;
	std::memcpy(frame, GATE_ADDRESS, sizeof(GATE_ADDRESS));
	ns3::Mac48Address("02:00:00:00:00:00").CopyTo(frame + 6); // from no station
	put(frame + 12, ETHERTYPE_GATE, 2);
	put(at, GATE_VERSION, 2);
	put(at + 4, gate.allowed, 8);
	taps[port].write(frame, sizeof(frame));
	read_tap(port);
}

void LiveMedium::check_address(size_t port) const
{
	ns3::Mac48Address has;

	has.CopyFrom(taps[port].address().data());
	if (!medium->is_bridged() && has != Medium::address(medium->node_of(port)))
		throw std::runtime_error(options.taps[port].device + " in " +
					 options.taps[port].namespace_path +
					 " does not have the address that the medium gives this node");
}

/* An open TAP device keeps its namespace alive: whose it was, if PATH is /proc/PID/ns/net, is a
 * process that ends. */
void LiveMedium::watch_node(size_t port, const std::string &path)
{
	epoll_event event{};
	int pid = 0, used = 0;

	if (std::sscanf(path.c_str(), "/proc/%d/ns/net%n", &pid, &used) != 1 ||
	    static_cast<size_t>(used) != path.size())
		return;
	int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
	event.events = EPOLLIN | EPOLLONESHOT;
	event.data.u32 = static_cast<uint32_t>(taps.size() + port);
	if (process < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, process, &event))
		fail("cannot watch the process of a namespace");
}

void LiveMedium::node_ended(size_t port)
{
	if (taps[port].is_gone() ||
	    epoll_ctl(poll_fd, EPOLL_CTL_DEL, taps[port].descriptor(), nullptr))
		return;
	ports_gone++;
}

void LiveMedium::on_frame(size_t port, const uint8_t *frame, size_t length)
{
	ns3::Mac48Address source, destination;

	if (length < ETHERNET_HEADER_BYTES)
		return;
	uint16_t ethertype = static_cast<uint16_t>(frame[12] << 8 | frame[13]);
	if (ethertype == ETHERTYPE_SURVEY) {
		answer_survey(port);
		return;
	}
	if (now_ns < 0) {
		early_frames++;
		return;
	}
	if (ethertype < ETHERTYPE_MIN || ethertype == ETHERTYPE_GATE)
		return;
	if (length > ETHERNET_HEADER_BYTES + MTU_MAX) {
		long_frames++;
		return;
	}
	destination.CopyFrom(frame);
	source.CopyFrom(frame + 6);
	medium->send(port,
		    ns3::Create<ns3::Packet>(frame + ETHERNET_HEADER_BYTES,
					     static_cast<uint32_t>(length - ETHERNET_HEADER_BYTES)),
		    ethertype, source, destination);
}

void LiveMedium::on_received(size_t port, const ns3::Packet &payload, uint16_t ethertype,
			     ns3::Mac48Address source, ns3::Mac48Address destination)
{
	uint8_t frame[FRAME_ROOM_BYTES];

	destination.CopyTo(frame);
	source.CopyTo(frame + 6);
	put(frame + 12, ethertype, 2);
	uint32_t length = payload.CopyData(frame + ETHERNET_HEADER_BYTES,
					   sizeof(frame) - ETHERNET_HEADER_BYTES);
	refused_frames += !taps[port].write(frame, ETHERNET_HEADER_BYTES + length);
	int64_t due_ns = ns3::Simulator::Now().GetNanoSeconds() - medium->lead_ns();
	late_max_ns = std::max(late_max_ns, now_ns - due_ns);
}

/* The node's counters at this instant, in network byte order: version (u16), how many (u16), the
 * medium's time in ns (u64), then the counters (u64 each, in the order of counter_names). */
void LiveMedium::answer_survey(size_t port)
{
	uint8_t answer[ETHERNET_HEADER_BYTES + 12 + 8 * COUNTERS];
	uint8_t *at = answer + ETHERNET_HEADER_BYTES;

	std::memcpy(answer, taps[port].address().data(), 6);
	ns3::Mac48Address("02:00:00:00:00:00").CopyTo(answer + 6); // from no station
	put(answer + 12, ETHERTYPE_SURVEY, 2);
	put(at, SURVEY_VERSION, 2);
	put(at + 2, COUNTERS, 2);
	put(at + 4, static_cast<uint64_t>(ns3::Simulator::Now().GetNanoSeconds() - medium->lead_ns()), 8);
	at += 12;
	for (uint64_t value : medium->counters(medium->node_of(port))) {
		put(at, value, 8);
		at += 8;
	}
	taps[port].write(answer, sizeof(answer));
}

void LiveMedium::sample()
{
	double now_s = (ns3::Simulator::Now().GetNanoSeconds() - medium->lead_ns()) * 1e-9;
	double next_s = now_s + options.sample_ms * 1e-3;
	char time[32];

	std::snprintf(time, sizeof(time), "%.3f", now_s);
	for (size_t node = 0; node < medium->nodes(); node++) {
		samples << time << ',' << node + 1;
		for (uint64_t value : medium->counters(node))
			samples << ',' << value;
		samples << '\n';
	}
	if (!options.duration_s || next_s < options.duration_s + 1e-6)
		ns3::Simulator::Schedule(ns3::MilliSeconds(options.sample_ms), &LiveMedium::sample,
					 this);
}

void LiveMedium::write_summary()
{
	if (options.summary_file.empty())
		return;
	std::ofstream file(options.summary_file);
	file << "{\"events\": " << simulator->GetEventCount() << ", \"wakeups\": " << wakeups
	     << ", \"late_max_us\": " << late_max_ns / 1e3 << ", \"early_frames\": " << early_frames
	     << ", \"long_frames\": " << long_frames << ", \"refused_frames\": " << refused_frames;
	medium->write_summary(file);
	file << "}\n";
	file.close();
	if (!file)
		fail("cannot write the summary");
}

} // namespace

int main(int argc, char **argv)
{
	try {
		LiveMedium(parse_options(argc, argv)).run();
	} catch (const std::invalid_argument &error) {
		std::fprintf(stderr, "labmedium: %s\n", error.what());
		return 2;
	} catch (const std::exception &error) {
		std::fprintf(stderr, "labmedium: %s\n", error.what());
		return 1;
	}
	return 0;
}
