#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --timeout 180
# 23-tenants.sh: whose a TSG is: by the nearest cgroup, by what was bound by hand, now and after plans change; what is
# told of it in events and to a reader in another pid namespace.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load
check "qgpu loads" modprobe qgpu
nl=$front_bin/qgpunl
top=/sys/fs/cgroup/qgpu-test
mkdir -p $top/outer/inner/leaf $top/other
id_of() { stat -c %i "$top/$1"; }

# in_cgroup CGROUP CMD...: become CMD there; for the background.
in_cgroup() {
	echo "$BASHPID" >"$top/$1/cgroup.procs"
	shift
	exec "$@"
}
pids=()
# start CGROUP: a tenant's process in that cgroup; its pid in $pid.
start() {
	in_cgroup "$1" "$front_bin/saturate" 1000 600 >/dev/null &
	pid=$!
	pids+=("$pid")
	check "a process in $1 has its TSG" wait_until 5 has_tsg "$pid"
}
has_tsg() { [[ -n $("$nl" tsgs 0 | awk -v pid="$1" '$4 == pid') ]]; }
# owner PID: name of the tenant of its TSGs.
owner() {
	local id
	id=$("$nl" tsgs 0 | awk -v pid="$1" '$4 == pid { print $3 }' | sort -u)
	"$nl" tenants 0 | awk -v id="$id" '$1 == id { print $2 }'
}
set_plan() { "$nl" plan 0 - "$@" >/dev/null; }

"$nl" events 100000 >/run/events &
listener=$!
check "somebody listens" wait_until 5 grep -q listening /run/events

# ---- cgroups ----
check "plan: a owns outer" set_plan "a:cgroups=$(id_of outer)"
start outer/inner/leaf
leaf=$pid
start other
other=$pid
check_equal "a process deep in outer is a's" "$(owner "$leaf")" a
check_equal "one elsewhere is default's" "$(owner "$other")" default
check "plan: b owns inner" set_plan "b:cgroups=$(id_of outer/inner)"
check_equal "the nearest cgroup decides" "$(owner "$leaf")" b
echo "$leaf" >$top/other/cgroup.procs
check "plan: anything" set_plan a:weight=150
check_equal "a process that is moved keeps its place for TSGs that it has" "$(owner "$leaf")" b
check "plan: b goes" set_plan b:remove
check_equal "its TSGs fall to the next ancestor's tenant" "$(owner "$leaf")" a
check "plan: a has other instead of outer" set_plan "a:cgroups=$(id_of other)"
check_equal "what was in outer is default's" "$(owner "$leaf")" default
check_equal "what is in other is a's" "$(owner "$other")" a
check "plan: a has nothing" set_plan a:cgroups=
check_equal "then it is default's" "$(owner "$other")" default

# Whoever may make cgroups below its own makes as many as it likes.
deep=outer/inner/leaf
for _ in {1..40}; do
	deep+=/d
	mkdir "$top/$deep"
done
check "plan: a has outer" set_plan "a:cgroups=$(id_of outer)"
start "$deep"
check_equal "a process 43 cgroups below outer is a's" "$(owner "$pid")" a
check "plan: b has inner" set_plan "b:cgroups=$(id_of outer/inner)"
check_equal "the nearest cgroup decides there too" "$(owner "$pid")" b
check "plan: neither has anything" set_plan a:cgroups= b:remove
kill -9 "$pid"
unset 'pids[-1]'

# ---- readers among TSGs that come and go ----
brief="$front_bin/saturate 1000 1 >/dev/null"
check_equal "a TSG that comes and goes does not interrupt who reads tenants" "$("$nl" during tenants "$brief")" 0
check_equal "nor who reads cards" "$("$nl" during cards "$brief")" 0
check_equal "but who reads TSGs" "$("$nl" during tsgs "$brief")" 1
change="$nl plan 0 - a:weight=151 >/dev/null"
for what in cards tenants tsgs; do
	check_equal "a plan that is replaced interrupts who reads $what" "$("$nl" during $what "$change")" 1
done

# ---- by hand ----
check "plan: a, b and c" set_plan a b c
check "bind the cgroup other to a" "$nl" bind 0 a cgroup="$(id_of other)"
check_equal "its processes are a's" "$(owner "$other")" a
check "bind the same to b" "$nl" bind 0 b cgroup="$(id_of other)"
check_equal "they are b's" "$(owner "$other")" b
check_equal "a's list lost it" "$("$nl" tenants 0 | awk '$2 == "a" { print $6 }')" -
check "bind the process to c" "$nl" bind 0 c pid="$other"
check_equal "a process by hand wins over its cgroup" "$(owner "$other")" c
serial=$("$nl" tsgs 0 | awk -v pid="$other" '$4 == pid { print $1 }')
check "bind its TSG to a" "$nl" bind 0 a tsg="$serial"
check_equal "a TSG by hand wins over its process" "$(owner "$other")" a
check "plan: a goes" set_plan a:remove
check_equal "then its process decides again" "$(owner "$other")" c
check "plan: c goes" set_plan c:remove
check_equal "then its cgroup" "$(owner "$other")" b

# A process is bound before it has any TSG.
mkfifo /run/go
in_cgroup outer bash -c 'read -r _ </run/go; exec "$0" 1000 600' "$front_bin/saturate" >/dev/null &
late=$!
pids+=("$late")
check "plan: d" set_plan d
check "bind a process without TSGs to d" "$nl" bind 0 d pid=$late
echo >/run/go
check "it makes a TSG" wait_until 5 has_tsg $late
check_equal "which is d's" "$(owner $late)" d
check_equal "d is listed with it" "$("$nl" tenants 0 | awk '$2 == "d" { print $NF }')" 1
kill -9 $late
wait $late 2>/dev/null || true
gone() { ! has_tsg "$1"; }
check "killed, its TSG is gone" wait_until 5 gone $late

# ---- what others see ----
seen=$(unshare --pid --fork --mount-proc "$nl" tsgs 0 | awk '{ print $4 }' | sort -u)
check_equal "a reader in another pid namespace sees no pid of ours" "$seen" 0
count() { awk -v kind="$1" -v pid="$2" '$1 == kind && (pid == 0 || $4 == pid)' /run/events | wc -l; }
told() { (($(count "$1" "$2") >= $3)); } # KIND PID TIMES
check "plans were told" wait_until 5 told 4 0 10
check "tenants' first TSGs were told" wait_until 5 told 5 0 5
check "tenants' last TSGs were told" wait_until 5 told 6 0 4
check "moves of a TSG were told" wait_until 5 told 7 "$other" 7
check_equal "the card obeyed" "$("$nl" cards 0 | cut -d' ' -f2)" 0

kill "$listener"
kill -9 "${pids[@]}" 2>/dev/null || true
wait 2>/dev/null || true
is_idle() { [[ -z $("$nl" tsgs 0) ]]; }
check "all TSGs are gone" wait_until 5 is_idle

# ---- whose opener is gone ----
check "plan: a has outer" set_plan "a:cgroups=$(id_of outer)"
in_cgroup outer "$front_bin/front_heir" >/run/heir &
check "a process leaves its TSG to a child" wait $!
has_two() { (($("$nl" tsgs 0 | wc -l) == 2)); }
check "who makes another" wait_until 5 has_two
owners() { # of all TSGs that there are
	local id
	id=$("$nl" tsgs 0 | awk '{ print $3 }' | sort -u)
	"$nl" tenants 0 | awk -v id="$id" '$1 == id { print $2 }'
}
check_equal "both are a's" "$(owners)" a
check "qgpu unloads" modprobe -r qgpu
check "and loads again" modprobe qgpu
check_equal "now it is default's" "$(owners)" default
check "plan: a has outer" set_plan "a:cgroups=$(id_of outer)"
check_equal "it is a's again" "$(owners)" a
kill -9 "$(</run/heir)"
check "its TSG is gone" wait_until 5 is_idle

# ---- what anybody may make the module remember is charged ----
many=()
for i in {1..1000}; do many+=("t$i"); done
check "plan: a thousand tenants" set_plan replace "${many[@]}"
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
reader=/sys/fs/cgroup/qgpu-reader
mkdir $reader
held() { (in_cgroup ../qgpu-reader "$nl" hold "$1" "cat $reader/memory.current"); }
none=$(held 0)
some=$(held 100)
note "bytes charged to a reader of counters: $none, with 100 dumps held open: $some"
check "counters that are read slowly are charged to the reader" test "$some" -gt $((none + 4000000))
check "plan: nobody" set_plan replace

find $top $reader -depth -type d -exec rmdir {} +
check "qgpu unloads" modprobe -r qgpu
front_unload
done_testing
