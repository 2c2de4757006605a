#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# run.sh: runs one TAP script as root in a throw-away VM that sees the host's / read-only, or with --icount only what
# memory-root.sh puts into its memory, and judges the run.
# Called by ./check and by people. Owns the QEMU command line and the rules of what a passed run is; the guest's
# side is init, guest.sh and lib.sh. Never needs KVM, never loads anything on the host.
set -euo pipefail

usage() {
	cat <<-'END'
	usage: run.sh [options] SCRIPT [args...]
	  --icount        one CPU whose clock counts instructions: exact, repeatable time, and sleeping is free
	  --smp2          two CPUs that really run at the same time: for races
	  --pci           with the chip model as a PCI device (pci/tu104.c), a card that no driver has
	  --reboot        the script ends by rebooting: it prints its plan before, and each line of /out/expected has to be
	                  among what QEMU said
	  --timeout S     kill the VM after S seconds of host time (default 120)
	  --mem MB        guest memory (default 1024)
	  --out DIR       directory that the guest sees as /out, and where the logs go (default: a temporary one,
	                  removed after a pass)
	QGPU_KERNEL names a file with another kernel's variables (debug-kernel.sh), whose time limits may be longer.
	Variables named QGPU_* reach the script. Prints the TAP on stdout and a verdict on stderr; exit status 0 only if
	the script exited 0, its plan was met, and the kernel log is clean.
	END
}

RIG=$(cd "$(dirname "$0")" && pwd)
mode=plain pci="" reboot="" timeout_s=120 mem_mb=1024 out=""
while (($#)); do
	case $1 in
	--icount) mode=icount ;;
	--smp2) mode=smp2 ;;
	--pci) pci=1 ;;
	--reboot) reboot=1 ;;
	--timeout) timeout_s=${2:?--timeout needs seconds} && shift ;;
	--mem) mem_mb=${2:?--mem needs MB} && shift ;;
	--out) out=${2:?--out needs a directory} && shift ;;
	-h | --help) usage && exit 0 ;;
	-*) usage >&2 && exit 2 ;;
	*) break ;;
	esac
	shift
done
(($#)) || { usage >&2 && exit 2; }
[[ -f $1 ]] || { echo "run.sh: no script $1" >&2 && exit 2; }
script=$(realpath "$1")
shift
[[ $timeout_s =~ ^[0-9]+$ && $mem_mb =~ ^[0-9]+$ ]] || { echo "run.sh: --timeout and --mem take whole numbers" >&2; exit 2; }

eval "$("$RIG/kernel.sh")"
timeout_s=$((timeout_s * ${KSLOWER:-1}))
mem_mb=$((mem_mb > ${KMEM_MB:-0} ? mem_mb : KMEM_MB))

keep_out=1
if [[ -z $out ]]; then
	out=$(mktemp -d "${TMPDIR:-/tmp}/qgpu-vm.XXXXXX")
	keep_out=
fi
mkdir -p "$out"
out=$(realpath "$out")
rm -f "$out"/{start,tap,console,dmesg,tainted,status,expected,qemu.log,verdict,initramfs.cpio}

qemu_pid=""
# shellcheck disable=SC2317 # called by the trap
on_exit() {
	[[ -z $qemu_pid ]] || kill -TERM "$qemu_pid" 2>/dev/null || true
	[[ -n $keep_out ]] || rm -rf "$out"
}
trap on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- initramfs: busybox, init, vmexit, and the modules that mounting the host's root needs ----

make_initramfs() {
	local target=$1 work n=0 module applet
	work=$(mktemp -d "${target%/*}/initramfs.XXXXXX")
	mkdir -p "$work"/{bin,dev,proc,sys,modules,lower,upper,root}
	cp /bin/busybox "$work/bin/busybox"
	for applet in sh mount umount insmod mkdir cat chmod echo switch_root chroot; do
		ln -s busybox "$work/bin/$applet"
	done
	gcc -O2 -static -o "$work/bin/vmexit" "$RIG/vmexit.c"
	install -m 755 "$RIG/init" "$work/init"
	while read -r module; do
		printf -v name '%02d-%s' $n "$(basename "${module%.xz}")"
		case $module in
		*.xz) xz -dc "$module" >"$work/modules/$name" ;;
		*) cp "$module" "$work/modules/$name" ;;
		esac
		n=$((n + 1))
	done < <(for module in virtio_pci 9pnet_virtio 9p overlay; do
		modprobe -d "$KROOT" -S "$KVER" --show-depends $module
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }')
	(cd "$work" && find . | LC_ALL=C sort | cpio -o -H newc --quiet) >"$work.cpio"
	rm -rf "$work"
	mv "$work.cpio" "$target"
}

cache=${QGPU_CACHE:-/var/cache/qgpu}/vm
mkdir -p "$cache"
key=$({ echo "$KVER $KROOT" && cat "$RIG/init" "$RIG/vmexit.c" "$RIG/run.sh"; } | sha256sum | cut -c1-16)
initramfs=$cache/initramfs-$key.cpio
if [[ ! -e $initramfs ]]; then
	(
		flock 9
		[[ -e $initramfs ]] && exit
		find "$cache" -maxdepth 1 -name 'initramfs-*.cpio' -mmin +1440 -delete
		make_initramfs "$initramfs"
	) 9>"$cache/lock"
fi

# host_khz: what tsc_khz.c prints, measured once for each boot of the host.
host_khz() {
	local of
	of=$cache/tsc-$(tr -d - </proc/sys/kernel/random/boot_id)
	if [[ ! -e $of ]]; then
		gcc -O2 -o "$of.bin.$$" "$RIG/tsc_khz.c" && "$of.bin.$$" >"$of.$$" && mv "$of.$$" "$of"
		rm -f "$of.bin.$$"
		find "$cache" -maxdepth 1 -name 'tsc-*' -mtime +1 -delete
	fi
	cat "$of"
}

# ---- what the guest runs ----

LOG_MARK="qgpu-vm: script starts"
is_below_tmp() { [[ $1 == /tmp || $1 == /tmp/* ]]; }
{
	# A tmpfs on the guest's /tmp is faster, but must not hide the tree under test.
	is_below_tmp "$script" || is_below_tmp "$RIG" || is_below_tmp "$PWD" || echo "export VM_PRIVATE_TMP=1"
	printf 'export %s=%q\n' VM_LOG_MARK "$LOG_MARK" VM_MODE "$mode" VM_KROOT "$KROOT" VM_KVER "$KVER" \
		VM_SLOWER "${KSLOWER:-1}"
	while IFS= read -r name; do
		printf 'export %s=%q\n' "$name" "${!name}"
	done < <(compgen -e | grep '^QGPU_' || true)
	printf 'cd %q\n' "$PWD"
	printf 'exec /bin/bash'
	printf ' %q' "$RIG/guest.sh" "$script" "$@"
	echo
} >"$out/start"

if [[ $mode == icount ]]; then
	KVER=$KVER KROOT=$KROOT "$RIG/memory-root.sh" "$script" | cat "$initramfs" - >"$out/initramfs.cpio"
	initramfs=$out/initramfs.cpio
fi

# ---- QEMU ----

# oops=panic: a broken kernel ends the run at once. loglevel=5: the second serial port gets warnings and worse as
# they happen, so that they survive a panic; the whole log comes back as /out/dmesg.
append="console=ttyS1 loglevel=5 log_buf_len=4M panic=-1 oops=panic mitigations=off nokaslr tsc=reliable"
append+=" no_timer_check noreplace-smp audit=0 apparmor=0 cryptomgr.notests rcupdate.rcu_expedited=1"
append+=" 8250.nr_uarts=2 i8042.noaux i8042.nokbd"
escape() { printf %s "${1//,/,,}"; } # QEMU's spelling of a comma in a value
qemu=(qemu-system-x86_64 -M q35 -cpu "qemu64,+rdrand" -m "$mem_mb" -nodefaults -no-user-config -no-reboot -display none
	-kernel "$KIMG" -initrd "$initramfs"
	-serial stdio -serial "file:$(escape "$out/console")"
	-device "isa-debug-exit,iobase=0xf4,iosize=4"
	-fsdev "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"
	-device "virtio-9p-pci,fsdev=host,mount_tag=host"
	-fsdev "local,id=out,path=$(escape "$out"),security_model=none,multidevs=remap"
	-device "virtio-9p-pci,fsdev=out,mount_tag=out")
case $mode in
plain) qemu+=(-accel "tcg,thread=multi") ;;
smp2) qemu+=(-accel "tcg,thread=multi" -smp 2) ;;
icount)
	# 2 ns an instruction; a slower kernel gets what there is, 1 ns.
	qemu+=(-accel tcg -icount "shift=$((${KSLOWER:-1} == 1)),sleep=off" -rtc "base=2026-01-01T00:00:00,clock=vm" -seed 1)
	append+=" norandmaps"
	;;
esac
# Where each step is slow, those of a detector's own are: a scan for leaks is no stall.
((${KSLOWER:-1} == 1)) || append+=" rcupdate.rcu_cpu_stall_timeout=$((21 * KSLOWER))"
khz=
[[ $mode == icount ]] || khz=$(host_khz)
append+=${khz:+ tsc_early_khz=$khz}
qemu+=(-append "$append")
if [[ -n $pci ]]; then
	"$RIG/build-device.sh" "$out/device" >"$out/device.log" 2>&1 || { cat "$out/device.log" >&2 && exit 2; }
	qemu=(env "LD_PRELOAD=$out/device/tu104.so" "${qemu[@]}" -device tu104)
fi

# Not through a pipe with a name in OUT: whoever looks at the files there would take from what is said.
exec {said}> >(stdbuf -oL tr -d '\r' | tee "$out/tap")
reader_pid=$!
started=$EPOCHREALTIME
timeout -k 5 "$timeout_s" "${qemu[@]}" </dev/null >&"$said" 2>"$out/qemu.log" &
qemu_pid=$!
exec {said}>&-
qemu_status=0
wait "$qemu_pid" || qemu_status=$?
qemu_pid=""
wait "$reader_pid" || true
rm -f "$out/initramfs.cpio"
wall_ms=$(((${EPOCHREALTIME/./} - ${started/./}) / 1000))

# ---- the verdict ----

took=$((wall_ms / 1000)).$(printf %03d $((wall_ms % 1000)))
if "$RIG/verdict.sh" "$out" "$qemu_status" "$timeout_s" "$LOG_MARK" $reboot >"$out/verdict"; then
	echo "run.sh: passed $(basename "$script") ($mode): $(<"$out/verdict"), $took s" >&2
	exit 0
fi
sed "s/^/run.sh: FAILED $(basename "$script") ($mode): /" "$out/verdict" >&2
keep_out=1
echo "run.sh: logs are in $out ($took s)" >&2
exit 1
