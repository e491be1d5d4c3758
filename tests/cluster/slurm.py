"""A temporary Slurm on loopback, without systemd, cgroups or a database.

Jobs run on the node n1; those of the partition `pair` on n1 and n2.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

NODES = ("n1", "n2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
ETC = Path("/etc/slurm")  # the jobstep plugin drops SLURM_CONF, so the default path must also work
READY = 60  # seconds until a daemon must answer


def missing():
    """Why Slurm cannot start here, or None."""
    if os.geteuid() != 0:
        return "a throw-away Slurm needs root"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    if absent:
        packages = "slurmctld slurmd slurm-client munge"
        return f"Slurm is not installed (no {absent[0]}): apt-get install {packages}"
    conf = ETC / "slurm.conf"
    if conf.exists() and not conf.is_symlink():
        return f"{conf} belongs to a real Slurm"
    if conf.exists():  # Another test's Slurm left this link, and may still be running.
        env = {**os.environ, "SLURM_CONF": str(conf)}
        ping = subprocess.run(
            ["scontrol", "ping"], env=env, capture_output=True, text=True, check=False
        )
        if "is UP" in ping.stdout:
            return f"another test's Slurm is running ({conf.readlink()})"
    return None


class Slurm:
    """A cluster's daemons. `env`: a client's environment variables."""

    def __init__(self, root, cpus, memory, port):
        self.root, self.cpus, self.memory, self.port = Path(root), cpus, memory, port
        self.host = socket.gethostname().split(".")[0]
        self.conf = self.root / "slurm.conf"
        self.env = {**os.environ, "SLURM_CONF": str(self.conf)}
        self.daemons = {}
        self.hosts = None

    def run(self, *command, check=True, timeout=30):
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, check=False, timeout=timeout
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def queue(self):
        """(job id, state, folder) of every job that Slurm remembers."""
        lines = self.run("squeue", "-h", "-t", "all", "-o", "%A %T %Z").splitlines()
        return [tuple(line.split(" ", 2)) for line in lines]

    def start(self):
        for folder in ("state", "munge", "log", *(f"spool/{node}" for node in NODES)):
            (self.root / folder).mkdir(parents=True)
        for folder in (self.root, self.root / "munge"):
            folder.chmod(0o755)
        self._resolve_to_loopback()
        self.conf.write_text(self._configuration())
        # Debian 12's slurmd initialises even an unused cgroup plugin. Version 23.02 and later can
        # disable it.
        version = tuple(map(int, self.run("slurmctld", "-V").split()[1].split(".")[:2]))
        plugin = "disabled" if version >= (23, 2) else "cgroup/v1"
        (self.root / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
        ETC.mkdir(exist_ok=True)
        for name in ("slurm.conf", "cgroup.conf"):
            link = ETC / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.root / name)
        key = self.root / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        socket_path = self.root / "munge" / "socket"
        self._daemon(
            *("munged", "-F", f"--key-file={key}", f"--socket={socket_path}"),
            *(f"--pid-file={self.root}/munged.pid", f"--log-file={self.root}/log/munged"),
            f"--seed-file={self.root}/munge.seed",
        )
        self._wait("munged", lambda: socket_path.exists())
        self.start_controller()
        for node in NODES:
            self.start_node(node)

    def start_controller(self):
        self._daemon("slurmctld", "-D", "-f", str(self.conf))
        self._wait("slurmctld", lambda: "is UP" in self.run("scontrol", "ping", check=False))

    def start_node(self, node):
        self._daemon("slurmd", "-D", "-f", str(self.conf), "-N", node, name=node)
        self._wait(node, lambda: re.match("idle|mixed|allocated", self.state_of(node)))

    def state_of(self, node):
        return self.run("sinfo", "-h", "-N", "-n", node, "-p", "pair", "-o", "%T", check=False)

    def kill_controller(self):
        self.daemons["slurmctld"].kill()
        self.daemons["slurmctld"].wait()

    @contextmanager
    def resumed(self):
        """Meanwhile, return drained nodes to service, as an administrator does.

        A killed controller loses its last seconds of state. After a restart, it may reuse a job id that a
        node knows. Slurm then drains the node ("Duplicate jobid").
        """
        ended = threading.Event()

        def resume():
            while not ended.wait(1):
                for node in NODES:
                    if self.state_of(node).startswith("drain"):
                        command = ("scontrol", "update", f"nodename={node}", "state=resume")
                        self.run(*command, check=False)

        thread = threading.Thread(target=resume)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def kill_node(self, node):
        """Kill the node's daemon and all its jobs, as if the machine had died."""
        self.daemons[node].kill()
        self.daemons[node].wait()
        self._kill(self.processes(node))

    def stop(self):
        """Cancel every job, stop the daemons, and undo the changes outside `root`."""
        try:
            self.run("scancel", "--full", "-u", "root", check=False, timeout=10)
            self._wait("the queue", lambda: not self.run("squeue", "-h", check=False), 30)
        except (RuntimeError, subprocess.TimeoutExpired):
            pass
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
        self._kill(self.processes())
        for name in ("slurm.conf", "cgroup.conf"):
            link = ETC / name
            if link.is_symlink() and link.readlink() == self.root / name:
                link.unlink()
        if self.hosts is not None:
            Path("/etc/hosts").write_text(self.hosts)

    def processes(self, node=None):
        """Process ids of a node's jobs, or of all jobs.

        Environment variables identify them, because without cgroups a job's grandchildren can outlive it.
        """
        marker = f"SLURMD_NODENAME={node}" if node else f"SLURM_CONF={self.conf}"
        numbers = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                try:
                    variables = (process / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if marker.encode() in variables and any(
                    v.startswith(b"SLURM_JOB_ID=") for v in variables
                ):
                    numbers.append(int(process.name))
        return numbers

    @staticmethod
    def _kill(processes):
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _daemon(self, *command, name=None):
        name = name or command[0]
        log = (self.root / "log" / f"{name}.out").open("ab")
        self.daemons[name] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=self.env,
            start_new_session=True,
        )

    def _wait(self, what, ready, seconds=READY):
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                tails = [
                    f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}"
                    for log in (self.root / "log").iterdir()
                ]
                raise RuntimeError(f"{what} is not ready after {seconds} s\n" + "\n".join(tails))
            time.sleep(0.2)

    def _resolve_to_loopback(self):
        """Make the host name resolve to loopback: Slurm's NoInAddrAny binds to the host's address."""
        try:
            addresses = {a[4][0] for a in socket.getaddrinfo(self.host, None, socket.AF_INET)}
        except socket.gaierror:
            addresses = set()
        if addresses and all(address.startswith("127.") for address in addresses):
            return
        hosts = Path("/etc/hosts")
        self.hosts = hosts.read_text()
        lines = [line for line in self.hosts.splitlines() if self.host not in line.split()[1:]]
        hosts.write_text("\n".join([f"127.0.0.1 {self.host}", *lines]) + "\n")

    def _configuration(self):
        root, port = self.root, self.port
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={port + 1 + k} "
            f"CPUs={self.cpus} RealMemory={self.memory} State=UNKNOWN"
            for k, node in enumerate(NODES)
        )
        return f"""\
ClusterName=test
SlurmctldHost={self.host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/%n.pid
SlurmctldLogFile={root}/log/slurmctld
SlurmdLogFile={root}/log/%n
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
EnforcePartLimits=ALL
JobRequeue=0
KillWait=2
MinJobAge=3600
MaxJobCount=20000
SlurmctldTimeout=30
SlurmdTimeout=30
{nodes}
PartitionName=debug Nodes=n1 Default=YES DefMemPerCPU=100 MaxTime=1440 State=UP
PartitionName=pair Nodes=n1,n2 DefMemPerCPU=100 MaxTime=1440 State=UP
"""


@contextmanager
def slurm(root, cpus=4, memory=64000, port=16817):
    """A running cluster. memory: nominal MB of each node."""
    cluster = Slurm(root, cpus, memory, port)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
