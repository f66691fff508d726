# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # setup's variables
#
# Part of testbed/setup: build trees in which the tests build the modules, for
# kernels and compilers that no installed headers package is for.
#
#   CACHE/trees/LINE/COMPILER    prepared build tree, as KDIR= takes it
#   CACHE/trees/LINE/source      what it is of
#   CACHE/trees/LINE/headers     Debian's configuration and symbols of that kernel
#   CACHE/trees/LINE/series      the files that sctp_jitter's patches change, all of them
#   CACHE/trees/sparse/source    a checker that reads the newest kernel's headers
#
#   LINE     kernel
#   stable   6.1, of Debian 12
#   lab      the one that the lab runs
#   newest   of Debian's unstable suite: what users of stable get next
#
# Headers packages carry the options of the compiler that built the kernel, so
# clang gets trees of its own: Debian's configuration, put to clang.

clang_version=19
trees=$cache/trees

# apt for unstable, beside the system's own. Nothing of it is installed. Its index
# expires after a week, which a mirror that lags may be older than.
unstable=$cache/unstable
apt_unstable() {
    local tool=$1
    shift
    "$tool" -qq -o Dir::Etc::sourcelist="$unstable/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$unstable/lists" -o Dir::Cache="$unstable/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none \
        -o Acquire::Check-Valid-Until=false "$@"
}

apt_stable() {
    "$1" -qq "${@:2}"
}

# The mirror is the one that this machine uses. The index is read once a day.
read_unstable_index() {
    [ -z "$(find "$unstable/complete" -mmin -1440 2>/dev/null)" ] || return 0
    local mirror
    # shellcheck disable=SC2016 # apt's variables
    mirror=$(apt-get indextargets --format '$(ORIGIN)/$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian/Debian" { print $2; exit }')
    [ -n "$mirror" ] || { say "this machine's apt knows no Debian mirror"; return 1; }
    mkdir -p "$unstable/lists/partial" "$unstable/cache/archives/partial"
    printf '%s sid main\n' "deb $mirror" "deb-src $mirror" >"$unstable/sources.list"
    apt_unstable apt-get update
    touch "$unstable/complete"
}

# Name what a meta package stands for: linux-source is linux-source-7.2 today.
unstable_package() {
    apt_unstable apt-cache depends "$1" |
        awk -v name="^${1%-amd64}-[0-9]" '$2 ~ name { print $2; exit }'
}

package_version() {
    "$1" apt-cache show --no-all-versions "$2" | sed -n 's/^Version: //p'
}

# Write the file PATTERN of a package to standard output.
package_file() {
    local apt=$1 package=$2 pattern=$3 folder
    folder=$(mktemp -d)
    (cd "$folder" && "$apt" apt-get download "$package" >&2)
    dpkg-deb --fsys-tarfile "$folder"/*.deb | tar -xO --wildcards "$pattern"
    rm -rf "$folder"
}

# Forget a line's trees if they are of something else than KEY.
keep_line() {
    local line=$1 key=$2
    [ "$(cat "$trees/$line/key" 2>/dev/null)" != "$key" ] || return 0
    rm -rf "${trees:?}/$line"
    mkdir -p "$trees/$line/headers"
    printf '%s\n' "$key" >"$trees/$line/key"
}

# Earlier ones had less in them.
has_series() {
    [ -e "$1/.complete" ] && [ -e "$1/tools/testing/selftests/net/config" ]
}

# Documentation and tests are among them, which no source to build in has.
unpack_series() {
    local src=$1 to=$2 files=(Makefile net/sctp include/net/sctp include/linux/sctp.h
        include/uapi/linux/sctp.h Documentation/networking/ip-sysctl.rst
        tools/testing/selftests/net/.gitignore tools/testing/selftests/net/Makefile
        tools/testing/selftests/net/config)
    ! has_series "$to" || return 0
    rm -rf "$to"
    mkdir -p "$to"
    if [ -d "$src" ]; then
        tar -C "$src" -cf - "${files[@]}" | tar -C "$to" -xf -
    else
        tar -C "$to" --strip-components=1 --no-wildcards-match-slash --wildcards \
            -xf "$src" "${files[@]/#/*/}"
    fi
    touch "$to/.complete"
}

unpack_package() {
    local apt=$1 package=$2 line=$3
    [ ! -e "$line/source/.complete" ] || ! has_series "$line/series" || return 0
    package_file "$apt" "$package" './usr/src/linux-source-*.tar.xz' >"$line/source.tar.xz"
    if [ ! -e "$line/source/.complete" ]; then
        rm -rf "$line/source"
        unpack_source "$line/source.tar.xz" "$line/source"
        touch "$line/source/.complete"
    fi
    unpack_series "$line/source.tar.xz" "$line/series"
    rm "$line/source.tar.xz"
}

# Signatures and type data are left out: they need what a kernel's own build makes.
prepare_tree() {
    local source=$1 headers=$2 tree=$3 compiler=()
    [ ! -e "$tree/complete" ] || return 0
    [ "$(basename "$tree")" = gcc ] || compiler=("LLVM=-$clang_version")
    rm -rf "$tree"
    mkdir -p "$tree"
    cp "$headers/.config" "$headers/Module.symvers" "$tree"
    "$source/scripts/config" --file "$tree/.config" -d MODULE_SIG -d DEBUG_INFO_BTF
    make -C "$source" ARCH=x86 O="$tree" "${compiler[@]}" olddefconfig
    make -C "$source" ARCH=x86 O="$tree" "${compiler[@]}" -j"$jobs" modules_prepare
    touch "$tree/complete"
}

# The newest installed headers of a kernel version, such as 6.1.
headers_of() {
    local found
    found=$(find /usr/src -maxdepth 1 -name "linux-headers-$1.*-amd64" | sort -V | tail -n 1)
    [ -n "$found" ] || { say "no linux-headers-$1.*-amd64"; return 1; }
    printf '%s' "$found"
}

trees_stable() {
    local headers
    headers=$(headers_of 6.1)
    keep_line stable "$(package_version apt_stable linux-source-6.1)"
    unpack_package apt_stable linux-source-6.1 "$trees/stable"
    prepare_tree "$trees/stable/source" "$headers" "$trees/stable/clang"
}

trees_lab() {
    local source headers
    source=$(kernel_dir)/source
    headers=$(headers_of "$(make -s -C "$source" kernelversion | cut -d . -f 1,2)")
    keep_line lab "$source"
    unpack_series "$(kernel_source)" "$trees/lab/series"
    prepare_tree "$source" "$headers" "$trees/lab/clang"
}

trees_newest() {
    local source headers file compiler
    source=$(unstable_package linux-source)
    headers=$(unstable_package linux-headers-amd64)
    keep_line newest "$headers $(package_version apt_unstable "$source")"
    unpack_package apt_unstable "$source" "$trees/newest"
    for file in .config Module.symvers; do
        [ -s "$trees/newest/headers/$file" ] ||
            package_file apt_unstable "$headers" "./usr/src/*/$file" >"$trees/newest/headers/$file"
    done
    for compiler in gcc clang; do
        prepare_tree "$trees/newest/source" "$trees/newest/headers" "$trees/newest/$compiler"
    done
}

# Debian 12's sparse does not know all of C that the newest headers use.
trees_sparse() {
    local source=$trees/sparse/source
    keep_line sparse "$(apt_unstable apt-cache showsrc sparse | sed -n 's/^Version: //p')"
    [ ! -x "$source/sparse" ] || return 0
    mkdir -p "$source"
    (cd "$trees/sparse" && apt_unstable apt-get source --download-only sparse)
    tar -C "$source" --strip-components=1 -xf "$trees"/sparse/sparse_*.orig.tar.*
    make -C "$source" -j"$jobs" sparse
}

# Side by side, as much of it is unpacking on one core. The tests skip what
# cannot be had.
setup_trees() {
    local line pids=()
    mkdir -p "$trees"
    say "build trees for the tests (logs: $trees/*.log)"
    (read_unstable_index) >"$trees/unstable.log" 2>&1 & wait $! ||
        say "no index of Debian's unstable suite ($trees/unstable.log)"
    for line in stable lab newest sparse; do
        ("trees_$line") >"$trees/$line.log" 2>&1 &
        pids+=("$line:$!")
    done
    for line in "${pids[@]}"; do
        wait "${line#*:}" ||
            say "  ${line%:*}: not ready, its tests will be skipped ($trees/${line%:*}.log)"
    done
}
