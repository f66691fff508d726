/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TAPS_H
#define TAPS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

/** An open TAP device. std::system_error or std::runtime_error if it cannot be had. */
class TapDevice
{
public:
	/** Attach to DEVICE of the network namespace at NAMESPACE_PATH, which must have an MTU of
	 * MTU_MAX at most. */
	TapDevice(const std::string &namespace_path, const std::string &device, int mtu_max);
	TapDevice(TapDevice &&other) noexcept;
	TapDevice(const TapDevice &) = delete;
	~TapDevice();

	int descriptor() const
	{
		return fd;
	}

	/** Return the MAC address that it had then. */
	const std::array<uint8_t, 6> &address() const
	{
		return mac;
	}

	/** Return the length of the next Ethernet frame, put into BUFFER; 0 if there is none. */
	size_t read(uint8_t *buffer, size_t room);
	/** Say whether the kernel has deleted the device, as read() found out. */
	bool is_gone() const
	{
		return gone;
	}

	/** Hand a frame to the kernel; return false if it had no room. */
	bool write(const uint8_t *frame, size_t length);

private:
	int fd;
	std::array<uint8_t, 6> mac;
	bool gone = false;
};

#endif
