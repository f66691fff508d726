# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Part of testbed/setup: a Debian kernel for the vm backend, with the headers that
# modules are built against. Nothing of it is installed on this machine.
#
#   CACHE/vm/RELEASE/vmlinuz, initrd         what QEMU boots
#   CACHE/vm/RELEASE/lib/modules/RELEASE     the modules that a network may need
#   CACHE/vm/RELEASE/usr/src/...             headers; modules are built by this machine's compiler,
#   CACHE/vm/RELEASE/sysroot                 or by the kernel's own, if it is of another Debian
#   CACHE/vm/RELEASE/release, version        the kernel's name, its package's version
#   .../usr/src/linux-source-LINE            of its source what SCTP is made of, for patching;
#                                            in sysroot/, if there is one

# pahole: the headers' vmlinux has BTF, and modules get theirs by it
vm_packages=(qemu-system-x86 busybox-static cpio libelf1 pahole)
# Of lib/modules/RELEASE/kernel; the whole is ten times as much.
vm_modules=(net lib crypto arch/x86/crypto fs/9p fs/netfs fs/fscache drivers/virtio 'drivers/net/*.ko*')
# The root file system: the host's, through the emulator.
initrd_modules=(virtio_pci 9pnet_virtio 9p)

# The newest image whose release starts with WANT: 6.1, 6.12, a whole release, or
# nothing for the newest that there is.
newest_image() { # APT WANT
    "$1" apt-cache search --names-only '^linux-image-[0-9].*-amd64$' 2>/dev/null |
        awk -v want="linux-image-${2%-amd64}" '
            $1 ~ /-(cloud|rt)-|-unsigned$/ || index($1, want) != 1 { next }
            want ~ /[0-9]$/ && substr($1, length(want) + 1) ~ /^[0-9]/ { next } # 6.1 is not 6.12
            { print $1 }' | sort -V | tail -n 1
}

# Print the name of the kernel that VM_KERNEL asks for, and which apt has it. This
# machine's own Debian goes before the unstable one.
find_vm_kernel() {
    local want=${VM_KERNEL:-} apt image
    for apt in apt_stable apt_unstable; do
        [ "$apt" = apt_stable ] || read_unstable_index >&2 || continue
        image=$(newest_image "$apt" "$want")
        [ -z "$image" ] || {
            printf '%s %s\n' "${image#linux-image-}" "$apt"
            return
        }
    done
    refuse "apt knows no kernel image '${want:-linux-image}': run 'apt-get update', or name another (as 6.1 or 6.12)"
}

# The packages of the same kernel that PACKAGE depends on, itself included.
parts_of() { # APT PACKAGE
    printf '%s\n' "$2"
    "$1" apt-cache depends "$2" |
        awk '$1 == "Depends:" && $2 ~ /^linux-(base|binary|modules|headers|kbuild)-/ { print $2 }'
}

# Unpack files of each .deb in FOLDER: /usr/lib and /lib are one.
unpack_debs() { # FOLDER INTO PATTERN...
    local deb
    for deb in "$1"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$2" --transform 's,^\./usr/lib/,./lib/,' \
            --wildcards "${@:3}" 2>/dev/null || true # not every package has all of them
    done
}

unpack_image() { # DEBS DIR RELEASE
    local debs=$1 dir=$2 release=$3 folder patterns=('*/boot/vmlinuz-*' "*/$release/vmlinuz" '*/modules.*')
    for folder in "${vm_modules[@]}"; do
        patterns+=("*/lib/modules/$release/kernel/$folder")
    done
    unpack_debs "$debs" "$dir" "${patterns[@]}"
    find "$dir" -mindepth 2 -name 'vmlinuz*' -exec mv {} "$dir/vmlinuz" \;
    [ -e "$dir/vmlinuz" ] || { say "no kernel image in the packages of $release"; return 1; }
    PATH=$PATH:/usr/sbin:/sbin depmod -b "$dir" "$release"
}

# The headers' Makefile names an absolute place.
unpack_headers() { # DEBS DIR RELEASE
    local debs=$1 dir=$2 release=$3
    unpack_debs "$debs" "$dir" './usr/src/*' '*/linux-kbuild-*'
    mkdir -p "$dir/usr"
    ln -s ../lib "$dir/usr/lib"
    sed -i "s,/usr/src,$dir/usr/src," "$dir/usr/src/linux-headers-$release/Makefile"
}

# The headers of another Debian come with programs and a compiler of that Debian: all
# that a build of modules needs, to be entered with testbed/kernels/in-sysroot.
make_sysroot() { # APT DEBS DIR RELEASE
    local apt=$1 debs=$2 root=$3/sysroot release=$4 name deb
    mkdir -p "$debs/partial" "$root"/{dev,proc,tmp,usr/{bin,sbin,lib,lib64}}
    for name in bin sbin lib lib64; do
        ln -s "usr/$name" "$root/$name"
    done
    "$apt" apt-get -o Dir::State::status=/dev/null -o Dir::Cache::archives="$debs" \
        -o Debug::NoLocking=1 --no-install-recommends --yes --download-only install \
        "linux-headers-$release" make bash dash coreutils diffutils findutils grep mawk patch sed tar
    for deb in "$debs"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink
    done
    ln -sf mawk "$root/usr/bin/awk"
}

# The files that sctp_jitter patches. A kernel without them is one without patched SCTP.
unpack_sctp() { # APT DIR
    local apt=$1 dir=$2 line to
    line=$(cut -d . -f 1,2 "$dir/version")
    to=$dir
    [ ! -e "$dir/sysroot" ] || to=$dir/sysroot
    to=$to/usr/src/linux-source-$line
    package_file "$apt" "linux-source-$line" './usr/src/linux-source-*.tar.xz' >"$dir/source.tar.xz" &&
        unpack_series "$dir/source.tar.xz" "$to"
    rm -f "$dir/source.tar.xz"
}

# A first root in memory that mounts the host's by 9p and goes on with $LAB_INIT.
make_initrd() { # DIR RELEASE
    local dir=$1 release=$2 root module n=10
    root=$(mktemp -d)
    mkdir "$root"/{bin,dev,host,modules}
    cp "$(command -v busybox)" "$root/bin"
    cp "$here/kernels/initrd-init" "$root/init"
    while read -r module; do
        n=$((n + 1))
        case $module in
        *.xz) xz -dc "$module" >"$root/modules/$n-$(basename "$module" .xz)" ;;
        *) cp "$module" "$root/modules/$n-$(basename "$module")" ;;
        esac
    done < <(PATH=$PATH:/usr/sbin:/sbin modprobe -d "$dir" -S "$release" -a --show-depends \
        "${initrd_modules[@]}" | awk '$1 == "insmod" && !seen[$2]++ { print $2 }')
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$dir/initrd.part"
    mv "$dir/initrd.part" "$dir/initrd"
    rm -rf "$root"
}

fetch_vm_kernel() { # APT DIR RELEASE
    local apt=$1 dir=$2 release=$3 debs
    rm -rf "$dir"
    mkdir -p "$dir"
    debs=$(mktemp -d)
    mkdir "$debs"/{image,headers}
    # shellcheck disable=SC2046 # package names are words
    (cd "$debs/image" && "$apt" apt-get download $(parts_of "$apt" "linux-image-$release"))
    unpack_image "$debs/image" "$dir" "$release"
    if [ "$apt" = apt_stable ]; then
        # shellcheck disable=SC2046
        (cd "$debs/headers" && "$apt" apt-get download $(parts_of "$apt" "linux-headers-$release"))
        unpack_headers "$debs/headers" "$dir" "$release"
    else
        make_sysroot "$apt" "$debs/headers" "$dir" "$release"
    fi
    dpkg-deb -f "$debs/image/linux-image-$release"_*.deb Version >"$dir/version"
    unpack_sctp "$apt" "$dir" || say "no linux-source package: no patched SCTP on $release"
    printf '%s\n' "$release" >"$dir/release"
    rm -rf "$debs"
    vm_recipe >"$dir/complete"
}

# A kernel that was fetched in another way than this file's is fetched again.
vm_recipe() {
    sha256sum <"$here/kernels/vm.sh"
}

vm_dir() {
    local found
    found=$(find_vm_kernel) || exit
    printf '%s/vm/%s' "$cache" "${found% *}"
}

setup_vm() {
    [ "$(uname -m)" = x86_64 ] || die "the vm backend knows x86-64 only; this machine is $(uname -m)"
    install_packages "${vm_packages[@]}"
    local release apt dir
    read -r release apt < <(find_vm_kernel) || exit 2 # it has been said why
    dir=$cache/vm/$release
    mkdir -p "$cache/vm"
    exec 8>"$dir.lock"
    flock 8
    [ "$(cat "$dir/complete" 2>/dev/null)" = "$(vm_recipe)" ] ||
        with_progress "fetching linux-image-$release and its headers" 4 "$dir.log" \
            fetch_vm_kernel "$apt" "$dir" "$release"
    [ "$dir/initrd" -nt "$here/kernels/initrd-init" ] || make_initrd "$dir" "$release"
}
