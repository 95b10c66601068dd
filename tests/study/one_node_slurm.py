"""A Slurm of one node in a folder of its own: munged, slurmctld and slurmd as Debian's slurm-wlm and munge have them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from waiting import until

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> str:
    """Return why Slurm cannot be started here; empty: it can."""
    missing = [name for name in NEEDED if not shutil.which(name, path=_path())]
    if missing:
        return f"{', '.join(missing)} not found: install Debian's slurm-wlm and munge"
    return "" if os.geteuid() == 0 else "only root can start Slurm's daemons"


@contextmanager
def one_node(folder: Path) -> Iterator[dict[str, str]]:
    """Return the environment in which `sbatch` and `srun` use a Slurm of this machine only."""
    folder.chmod(0o755)  # munge refuses a folder that others may write to
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname().partition(".")[0]
    text = CONFIGURATION.format(folder=folder, host=host, controller=free_port(), node=free_port())
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    environment = {**os.environ, "PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf")}
    with ExitStack() as stack:
        files = {"socket": "munge.socket", "log-file": "munge.log", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        options = [f"--{option}={folder}/{name}" for option, name in files.items()]
        munge = ["munged", "--foreground", "--force", f"--key-file={key}", *options]
        stack.enter_context(_daemon(munge, folder, environment))
        until(lambda: (folder / "munge.socket").exists())
        for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
            stack.enter_context(_daemon(command, folder, environment))
        until(lambda: "State=IDLE" in said(["scontrol", "show", "node", host], environment))
        yield environment


def said(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@contextmanager
def _daemon(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    with (folder / f"{command[0]}.out").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
