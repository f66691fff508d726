// SPDX-License-Identifier: GPL-2.0-only
#include "taps.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace
{

[[noreturn]] void fail(const std::string &what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

/* In its lifetime the process is in another network namespace. */
class InNamespace
{
public:
	explicit InNamespace(const std::string &path)
	{
		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		int there = open(path.c_str(), O_RDONLY | O_CLOEXEC);
		if (home < 0 || there < 0 || setns(there, CLONE_NEWNET))
			fail("cannot enter the namespace " + path);
		close(there);
	}

	~InNamespace()
	{
		if (setns(home, CLONE_NEWNET))
			std::terminate(); // nothing could be trusted any more
		close(home);
	}

private:
	int home;
};

} // namespace

TapDevice::TapDevice(const std::string &namespace_path, const std::string &device, int mtu_max)
{
	InNamespace there(namespace_path);
	ifreq request{};

	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fail("cannot open /dev/net/tun");
	if (device.empty() || device.size() >= sizeof(request.ifr_name))
		throw std::runtime_error("no name of a device: " + device);
	if (!if_nametoindex(device.c_str())) // TUNSETIFF would make it, down and without address
		fail("no device " + device + " in " + namespace_path);
	std::memcpy(request.ifr_name, device.c_str(), device.size());
	request.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(fd, TUNSETIFF, &request))
		fail("cannot attach to the TAP device " + device);
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ifreq mtu = request;
	if (any < 0 || ioctl(any, SIOCGIFMTU, &mtu))
		fail("no MTU of " + device);
	close(any);
	if (mtu.ifr_mtu > mtu_max)
		throw std::runtime_error(device + " in " + namespace_path + " has an MTU of " +
					 std::to_string(mtu.ifr_mtu) + ": 802.11 carries " +
					 std::to_string(mtu_max) + " bytes at most");
	if (ioctl(fd, SIOCGIFHWADDR, &request))
		fail("no address of " + device);
	std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
}

TapDevice::TapDevice(TapDevice &&other) noexcept : fd(other.fd), mac(other.mac)
{
	other.fd = -1;
}

TapDevice::~TapDevice()
{
	if (fd >= 0)
		close(fd);
}

size_t TapDevice::read(uint8_t *buffer, size_t room)
{
	ssize_t length = ::read(fd, buffer, room);

	if (length < 0 && errno == EBADFD)
		gone = true;
	else if (length < 0 && errno != EAGAIN && errno != EINTR)
		fail("cannot read from a TAP device");
	return length > 0 ? static_cast<size_t>(length) : 0;
}

bool TapDevice::write(const uint8_t *frame, size_t length)
{
	if (::write(fd, frame, length) >= 0)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return false;
	// a device that is down or deleted takes nothing, as a node that is off would
	if (errno != EIO && errno != EBADFD)
		fail("cannot write to a TAP device");
	return true;
}
