# SPDX-License-Identifier: GPL-2.0
"""What daemon/exec/protocol.hpp says, for scripts: starts qgpu-exec on a card and speaks to it."""
import array
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

MAGIC, VERSION = 0x65786571, 5
HELLO, HELLO_REPLY, PLAN, PLAN_REPLY, ADD, GONE, PROCESS_REPLY, STATS, STATS_REPLY, EVENT = range(1, 11)
POLICIES = {"best-effort": 0, "equal-share": 1, "fixed-share": 2, "burst-share": 3}
CLASSES = {"normal": 0, "online": 1, "offline": 2}
EVENTS = {1: "controlled", 2: "gone", 3: "blind", 4: "refused", 5: "foreign", 6: "quarantine",
          7: "no-progress", 8: "restarted", 9: "trace-lost", 10: "card-state"}

HEADER = struct.Struct("<IHHII")
STATUS = struct.Struct("<iI176s")
PLAN_HEAD = struct.Struct("<QQIIII")
PLAN_TENANT = struct.Struct("<IIIIIIQQ")
HELLO_BODY = struct.Struct("<48s64s32s32sQQQQQIIII")
STATS_BODY = struct.Struct("<QQQQQQQQQQQQIIIIQQQQQ")
TENANT = struct.Struct("<IIQQIIII12QII17Q")
OBJECT = struct.Struct("<iIIIIIQQQ")
EVENT_BODY = struct.Struct("<IIiIIIQQ176s")
TENANT_NAMES = ("id share_ppm slice_ns window_ns awake tsgs processes source run_ns run_err_ns wait_ns "
                "throttled_ns windows preempts overruns visits gates foreign_changes "
                "wait_max_ns hangs place copy_tsgs").split()
OBJECT_NAMES = "pid tenant_id tsg_id runlist channels gated slice_ns found_ns uncontrolled_ns".split()
HEAD_NAMES = ("time_ns since_ns generation cycle_ns switch_ns idle_ns nobody_ns removed_ns controls refused "
              "lost_records cpu_ns source card_state tenant_count object_count").split()


def text(raw):
    return raw.split(b"\0", 1)[0].decode()


class Refused(Exception):
    pass


class Executor:
    """One qgpu-exec, started here unless it runs already."""

    def __init__(self, binary, card="0", run_dir=None):
        self.run_dir = run_dir or tempfile.mkdtemp(prefix="qgpu-exec-")
        self.process = subprocess.Popen([binary, "--card", card, "--run-dir", self.run_dir])
        self.serial, self.generation, self.events, self.socket = 0, 0, [], None
        self.connect()

    def connect(self):
        deadline = time.monotonic() + 10
        while True:
            if self.process.poll() is not None:
                raise Refused("qgpu-exec ended with status %d" % self.process.returncode)
            names = [n for n in os.listdir(self.run_dir) if n.startswith("exec-") and n.endswith(".sock")]
            try:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self.socket.connect(os.path.join(self.run_dir, names[0]))
                self.socket.settimeout(10)
                self.hello = self.say_hello()
                return
            except (IndexError, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def call(self, kind, body=b"", fds=()):
        self.serial += 1
        packet = HEADER.pack(MAGIC, VERSION, kind, HEADER.size + len(body), self.serial) + body
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([packet], control)
        while True:
            reply = self.socket.recv(1 << 18)
            if not reply:
                raise OSError("the executor closed the connection")
            _, _, kind, _, serial = HEADER.unpack_from(reply)
            if kind == EVENT:
                self.note(reply)
            elif serial == self.serial:
                return reply

    def note(self, packet):
        kind, tenant, pid, control, status, state, at, value, sentence = EVENT_BODY.unpack_from(packet, 16)
        self.events.append({"kind": EVENTS.get(kind, kind), "tenant": tenant, "pid": pid, "status": status,
                            "time_ns": at, "value_ns": value, "sentence": text(sentence)})

    @staticmethod
    def check(reply):
        error, tenant, sentence = STATUS.unpack_from(reply, 16)
        if error:
            raise Refused("%s (%d, tenant %d)" % (text(sentence), error, tenant))

    def say_hello(self):
        reply = self.call(HELLO)
        values = HELLO_BODY.unpack_from(reply, 16 + STATUS.size)
        names = "uuid name driver profile generation since_ns switch_ns slice_min slice_max state source processes restarts"
        out = dict(zip(names.split(), values))
        for key in ("uuid", "name", "driver", "profile"):
            out[key] = text(out[key])
        out["sentence"] = text(STATUS.unpack_from(reply, 16)[2])
        self.generation = max(self.generation, out["generation"])
        return out

    def plan(self, policy, tenants, cycle_ns=0):
        """tenants: dicts with id and, where not the default, weight, guarantee, ceiling (0...1), class."""
        self.generation += 1
        body = PLAN_HEAD.pack(self.generation, cycle_ns, 0, POLICIES[policy], len(tenants), 0)
        for t in tenants:
            body += PLAN_TENANT.pack(t["id"], t.get("weight", 100), round(t.get("guarantee", 0) * 1e6),
                                     round(t.get("ceiling", 1) * 1e6), CLASSES[t.get("class", "normal")], 0,
                                     t.get("wake_ns", 0), 0)
        self.check(self.call(PLAN, body))

    def add(self, pid, tenant):
        fd = os.pidfd_open(pid)
        try:
            self.check(self.call(ADD, struct.pack("<iI", pid, tenant), [fd]))
        finally:
            os.close(fd)

    def stats(self):
        reply = self.call(STATS)
        at = 16 + STATUS.size
        values = STATS_BODY.unpack_from(reply, at)
        out = dict(zip(HEAD_NAMES, values))
        at += STATS_BODY.size
        out["tenants"], out["objects"] = {}, []
        for _ in range(out["tenant_count"]):
            t = dict(zip(TENANT_NAMES, TENANT.unpack_from(reply, at)))
            out["tenants"][t["id"]] = t
            at += TENANT.size
        for _ in range(out["object_count"]):
            out["objects"].append(dict(zip(OBJECT_NAMES, OBJECT.unpack_from(reply, at))))
            at += OBJECT.size
        return out

    def worker(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return int(f.read().split()[0])

    def stop(self):
        if self.socket:
            self.socket.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)
