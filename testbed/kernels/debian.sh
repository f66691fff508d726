# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Part of testbed/setup: a whole Debian for QEMU, to install packages in. Root is needed, as its files
# belong to root; nothing of it is installed on this machine.
#
#   CACHE/debian/SUITE/root.ext4             its disk; machines that boot it throw their changes away
#   CACHE/debian/SUITE/vmlinuz, initrd       its own kernel, as its packages made it
#
# The guest runs `run` of an archive that is its second disk, says "guest: exit STATUS" on its console
# and is gone.

debian_tools=(mmdebstrap e2fsprogs qemu-system-x86)
# What an administrator has there before ours come, besides all that ours depend on: a guest has no
# network.
debian_packages=(linux-image-amd64 linux-headers-amd64 initramfs-tools udev kmod procps dkms patch
    linux-source iproute2 iperf3 python3 python3-venv build-essential bc bison flex xz-utils
    mininet bridge-utils ethtool net-tools iputils-ping)
debian_size=4G

# Date checks: an archive of unstable is as old as its mirror.
debian_files() { # SUITE FOLDER
    local sources="deb http://deb.debian.org/debian $1 main"
    [ "$1" = sid ] || sources+="
deb http://deb.debian.org/debian-security $1-security main"
    mmdebstrap --mode=root --variant=minbase --format=directory \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
        --include="$(printf '%s,' "${debian_packages[@]}" | sed 's/,$//')" \
        "$1" "$2" - <<<"$sources" 2>&1 | sed 's/^I: /  DONE /' # the progress counts these
}

# In place of init: the kernel's own, and nothing else, then the job.
debian_init() {
    cat <<'END'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive
mount -t tmpfs none /tmp
mkdir /tmp/job
mount -t tracefs none /sys/kernel/tracing
ip link set lo up
tar -xf /dev/vdb -C /tmp/job
cd /tmp/job && ./run </dev/null
echo "guest: exit $?"
sync
echo o >/proc/sysrq-trigger
sleep 60
END
}

make_debian() { # SUITE DIR
    local suite=$1 dir=$2 root
    rm -rf "$dir"
    mkdir -p "$dir"
    root=$(mktemp -d "$dir/root.XXXX")
    debian_files "$suite" "$root" || return
    : >"$root/etc/apt/sources.list"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/etc/apt/sources.list.d/*
    echo "$suite" >"$root/etc/hostname"
    debian_init >"$root/usr/local/sbin/guest-init"
    chmod 755 "$root/usr/local/sbin/guest-init"
    cp -L "$root/vmlinuz" "$dir"
    cp -L "$root/initrd.img" "$dir/initrd"
    mke2fs -q -t ext4 -d "$root" "$dir/root.ext4" "$debian_size" || return
    rm -rf "$root"
    debian_recipe >"$dir/complete"
}

# One that was made in another way than this file's is made again.
debian_recipe() {
    {
        printf '%s ' "${debian_packages[@]}" "$debian_size"
        declare -f debian_files debian_init make_debian
    } | sha256sum
}

setup_debian() {
    local suite=${DEBIAN_SUITE:-bookworm} dir
    case $suite in
    *[!a-z]*) refuse "DEBIAN_SUITE=$suite: a suite of Debian, as bookworm or sid" ;;
    esac
    [ "$(uname -m)" = x86_64 ] || die "the machines are x86-64 only; this one is $(uname -m)"
    [ "$(id -u)" = 0 ] || die "a Debian's files belong to root: run this as root"
    install_packages "${debian_tools[@]}"
    dir=$cache/debian/$suite
    mkdir -p "$cache/debian"
    exec 7>"$dir.lock"
    flock 7
    [ "$(cat "$dir/complete" 2>/dev/null)" = "$(debian_recipe)" ] ||
        with_progress "making a Debian $suite to install packages in" 10 "$dir.log" make_debian "$suite" "$dir"
}
