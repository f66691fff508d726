# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # setup's variables
#
# Part of testbed/setup: a kernel for the vm backend that watches itself, built here
# from the lab kernel's source. VM_KERNEL=debug: KASAN, UBSAN, lockdep, kmemleak;
# VM_KERNEL=kasan: KASAN and lockdep alone, which is faster; VM_KERNEL=kcsan: data races
# (KCSAN), lockdep.
#
#   CACHE/vm/NAME-KEY            laid out as vm.sh lays out Debian's
#   CACHE/vm/NAME-KEY/source, obj   what it is made of, where; modules are built there

vm_builds=(debug kasan kcsan)
vm_build_packages=(libelf-dev) # objtool, which a kernel of x86 is built with

# Does VM_KERNEL ask for one that is built here?
is_vm_build() {
    [[ " ${vm_builds[*]} " == *" ${VM_KERNEL:-} "* ]]
}

# Where VM_KERNEL is, whoever made it.
vm_folder() {
    local name
    if is_vm_build; then
        name=$(vm_build_name "$VM_KERNEL") || exit
        printf '%s/vm/%s' "$cache" "$name"
    else
        vm_dir
    fi
}

vm_configs() { # NAME
    printf '%s\n' "$here/kernels/"{lab,vm,"$1"}.config
}

# Named after all that goes into it.
vm_build_name() { # NAME
    local src key configs
    src=$(kernel_source) || exit
    mapfile -t configs < <(vm_configs "$1")
    key=$({
        if [ -d "$src" ]; then source_files "$src"; else stat -c '%n %s %Y' "$src"; fi
        cat "${configs[@]}"
        gcc -dumpfullversion
        declare -f build_vm_kernel
    } | sha256sum | cut -c1-12)
    printf '%s-%s' "$1" "$key"
}

# The whole of vm.config must have survived, and what NAME.config turns on.
check_vm_config() { # OBJ NAME
    local line
    while read -r line; do
        grep -qxF "$line" "$1/.config" || {
            say "the configuration lost $line: this kernel source does not know it, or a dependency is missing"
            return 1
        }
    done < <(grep -hE '^CONFIG_' "$here/kernels/vm.config" "$here/kernels/$2.config")
}

build_vm_kernel() { # DIR NAME
    local dir=$1 name=$2 obj=$1/obj configs release
    rm -rf "$dir"
    mkdir -p "$obj" "$dir/usr/src"
    unpack_source "$(kernel_source)" "$dir/source"
    unpack_series "$(kernel_source)" "$dir/series"
    make -C "$dir/source" ARCH=x86 O="$obj" tinyconfig
    mapfile -t configs < <(vm_configs "$name")
    sed 's/^#? //' "${configs[@]}" >>"$obj/.config"
    make -C "$dir/source" ARCH=x86 O="$obj" olddefconfig
    check_vm_config "$obj" "$name"
    make -C "$dir/source" ARCH=x86 O="$obj" -j"$jobs" bzImage modules
    make -C "$dir/source" ARCH=x86 O="$obj" INSTALL_MOD_PATH="$dir" modules_install
    release=$(make -s -C "$obj" kernelrelease)
    cp "$obj/arch/x86/boot/bzImage" "$dir/vmlinuz"
    ln -s ../../obj "$dir/usr/src/linux-headers-$release"
    ln -s ../../series "$dir/usr/src/linux-source-$(cut -d . -f 1,2 <<<"$release")"
    printf '%s\n' "$release" | tee "$dir/version" >"$dir/release"
    touch "$dir/complete"
}

# What mounts the root is built in.
make_plain_initrd() { # DIR
    local initrd_modules=()
    make_initrd "$1" "$(cat "$1/release")" 2>/dev/null
}

setup_vm_build() {
    [ "$(uname -m)" = x86_64 ] || die "the vm backend knows x86-64 only; this machine is $(uname -m)"
    install_packages "${vm_packages[@]}" "${vm_build_packages[@]}"
    local name=$VM_KERNEL dir
    dir=$(vm_folder) || exit
    mkdir -p "$cache/vm"
    exec 8>"$dir.lock"
    flock 8
    [ -e "$dir/complete" ] ||
        with_progress "building the vm's $name kernel" 2200 "$dir.log" build_vm_kernel "$dir" "$name"
    [ "$dir/initrd" -nt "$here/kernels/initrd-init" ] ||
        make_plain_initrd "$dir"
}
