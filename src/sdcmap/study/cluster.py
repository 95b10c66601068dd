"""Run jobs on a Dask cluster. No other module imports dask.

A task contains the version, the digest of the data and a chunk of jobs as bytes: candidates with their derived keys,
never data and never the seed. Task names are random. A worker opens the working copy once, by path and digest. Workers
that cannot see the driver's disk receive the data once (without identifiers) and keep them in memory, never on disk.
Connections to other machines need TLS. A cluster that sdcmap starts itself uses TLS too, so that other users of the
machine cannot connect.
"""

from __future__ import annotations

import ipaddress
import pickle
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sdcmap import __version__
from sdcmap.data.microdata import Microdata
from sdcmap.data.private_folder import private_folder
from sdcmap.errors import MissingExtra, PlanError, SdcmapError, StudyDamaged
from sdcmap.files.subprocesses import safe_path
from sdcmap.study.jobs import CandidateRow
from sdcmap.study.worker import limit_to_one_thread, open_cached_copy, run_here

SCHEDULER_TIMEOUT_SECONDS = 60  # to wait for a scheduler and for its first worker
WORKER_COUNT_REFRESH_SECONDS = 2  # each refresh is a request to the scheduler
SCHEDULER_LOST = "the Dask scheduler was lost. Stored scores are kept: start a scheduler and sweep again to continue."
NEEDS_TLS = """a Dask cluster off this machine needs TLS: give the ca-file, cert and key of distributed.comm.tls in Dask's \
configuration, such as DASK_DISTRIBUTED__COMM__TLS__CA_FILE."""
RECEIVED_DATA: dict[str, Microdata] = {}  # in a worker: the data it received, by digest


class Answer(NamedTuple):
    """A worker's answer: its version, the digest of its data, and the rows, or the reason why there are none."""

    version: str
    digest: str
    rows: list[CandidateRow]
    refusal: str = ""


def answer_chunk(version: str, digest: str, copy: str | None, chunk: bytes) -> Answer:
    """Run a chunk of jobs in a worker. Version and data conflicts are returned as a refusal, not raised."""
    if version != __version__:
        return Answer(__version__, "", [], f"a worker runs sdcmap {__version__} and this is {version}")
    try:
        data = RECEIVED_DATA[digest] if copy is None else open_cached_copy(copy, digest)
    except (KeyError, StudyDamaged):
        return Answer(__version__, "", [], "a worker does not have these data")
    limit_to_one_thread()
    return Answer(__version__, data.digest, run_here(data, pickle.loads(chunk)))


def can_open(copy: str, digest: str) -> bool:
    """Return whether this worker can read the driver's working copy."""
    try:
        return open_cached_copy(copy, digest).digest == digest
    except StudyDamaged:
        return False


class Cluster(Executor):
    """A Dask client as an executor of chunks of jobs."""

    shared_fate = False  # when one worker dies, the others go on

    def __init__(self, client: Any, data: Microdata, copy: Path) -> None:
        self.client, self.digest, self.plugin = client, data.digest, ""
        self._workers, self._ask_again = 1, 0.0
        try:
            client.wait_for_workers(1, timeout=SCHEDULER_TIMEOUT_SECONDS)
            seen = client.run(can_open, str(copy), self.digest)
        except TimeoutError:
            raise SdcmapError(
                f"the Dask scheduler had no worker within {SCHEDULER_TIMEOUT_SECONDS} s: start some."
            ) from None
        except Exception as error:
            raise self._translate_error(error) from None
        # only if every worker can read the driver's copy; otherwise all of them receive the data
        self.copy = str(copy) if all(seen.values()) else None
        if self.copy is None:
            self._send(copy)

    def _send(self, copy: Path) -> None:
        """Send the data once to every worker, including those that join later. Workers keep them in memory only."""
        from distributed import WorkerPlugin

        from sdcmap.files.working_copy import open_copy

        digest, data = self.digest, open_copy(copy, self.digest)

        class Hold(WorkerPlugin):  # type: ignore[misc]
            """Keeps the data in a worker while a sweep runs."""

            def setup(self, worker: Any) -> None:
                from sdcmap.study.cluster import RECEIVED_DATA

                RECEIVED_DATA[digest] = data

            def teardown(self, worker: Any) -> None:
                from sdcmap.study.cluster import RECEIVED_DATA

                RECEIVED_DATA.pop(digest, None)

        self.plugin = f"sdcmap-{secrets.token_hex(8)}"
        self.client.register_plugin(Hold(), name=self.plugin)

    @property
    def workers(self) -> int:
        """The current number of threads. It is refreshed now and then, because a cluster may grow and shrink."""
        if time.monotonic() > self._ask_again:
            try:
                self._workers = max(1, int(sum(self.client.nthreads().values())))
            except Exception:
                raise SdcmapError(SCHEDULER_LOST) from None
            self._ask_again = time.monotonic() + WORKER_COUNT_REFRESH_SECONDS
        return self._workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a chunk of jobs. `fn` is ignored: workers always run `answer_chunk`."""
        *_, chunk = args
        wanted: Future[Any] = Future()
        try:
            sent = self.client.submit(
                answer_chunk, __version__, self.digest, self.copy, pickle.dumps(chunk),
                key=f"sdcmap-{secrets.token_hex(16)}", pure=False,
            )  # fmt: skip
        except Exception:
            raise SdcmapError(SCHEDULER_LOST) from None
        wanted.add_done_callback(lambda done: sent.cancel() if done.cancelled() else None)
        sent.add_done_callback(lambda done: self._deliver(done, wanted))
        return wanted

    def _deliver(self, done: Any, wanted: Future[Any]) -> None:
        if not wanted.set_running_or_notify_cancel():
            return
        try:
            answered = done.result(timeout=SCHEDULER_TIMEOUT_SECONDS)
        except BaseException as error:
            wanted.set_exception(self._translate_error(error))
            return
        if answered.refusal or (answered.version, answered.digest) != (__version__, self.digest):
            reason = answered.refusal or "a worker answered for other data or another version"
            wanted.set_exception(SdcmapError(f"{reason}: the sweep has stopped. Stored scores are kept."))
        else:
            wanted.set_result(answered.rows)

    @staticmethod
    def _translate_error(error: BaseException) -> Exception:
        """Return BrokenExecutor for a killed worker, so that its chunk is repeated, and SdcmapError for anything else."""
        if type(error).__name__ == "KilledWorker":
            return BrokenExecutor("a worker was killed")
        if "ModuleNotFoundError" in f"{type(error).__name__} {error}":  # `client.run` passes on the text only
            return SdcmapError("a Dask worker cannot import sdcmap: install it in the workers' environment.")
        if isinstance(error, CancelledError) or "Cancelled" in type(error).__name__:
            return SdcmapError(SCHEDULER_LOST)
        return SdcmapError(f"the Dask cluster failed ({type(error).__name__}). Stored scores are kept.")

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Remove the data from the workers. The client is closed by its owner."""
        if self.plugin and self.client.status == "running":
            with suppress(OSError, TimeoutError):
                self.client.unregister_worker_plugin(self.plugin)
        self.plugin = ""


@contextmanager
def open_client(engine: str, workers: int) -> Iterator[Any]:
    """Open a client: "dask" starts a cluster on this machine, "dask://HOST:PORT" connects to a scheduler."""
    try:
        import dask
        from distributed import Client, LocalCluster, Security
    except ImportError:
        raise MissingExtra("a Dask cluster needs: pip install 'sdcmap[dask]'") from None
    with ExitStack() as stack:
        if engine == "dask":
            scratch = stack.enter_context(private_folder())
            quiet = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}
            stack.enter_context(dask.config.set(quiet))
            stack.enter_context(safe_path())
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, host="127.0.0.1", security=Security.temporary(),
                dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},  # any port, and no page on it
                local_directory=scratch, silence_logs=50,
            )  # fmt: skip
            client = Client(stack.enter_context(cluster), set_as_default=False)
        else:
            try:
                client = Client(
                    _address(engine), security=Security(), timeout=SCHEDULER_TIMEOUT_SECONDS, set_as_default=False
                )
            except (OSError, TimeoutError):
                raise SdcmapError(f"no Dask scheduler answers at {engine.removeprefix('dask://')}.") from None
        yield stack.enter_context(client)


def _address(engine: str) -> str:
    """Return the address of a scheduler, or raise SdcmapError where it is on another machine and TLS is not configured."""
    from distributed import Security

    host, _, port = engine.removeprefix("dask://").rpartition(":")
    if not host or not port.isdigit():
        raise PlanError(f"{engine!r} is not the address of a Dask scheduler: write dask://HOST:PORT.")
    secure = Security().get_connection_args("client").get("ssl_context") is not None
    if not secure and not is_loopback(host):
        raise SdcmapError(NEEDS_TLS)
    return f"{'tls' if secure else 'tcp'}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def unwrap_client(executor: Executor) -> Any | None:
    """Return the Dask client behind `client.get_executor()`, or None for other executors.

    Raises SdcmapError where the client talks to another machine without TLS.
    """
    client = getattr(executor, "_client", None)
    if client is None or not type(executor).__module__.startswith("distributed"):
        return None
    scheme, _, address = str(client.scheduler.address).partition("://")
    if scheme == "tcp" and not is_loopback(address.rpartition(":")[0]):
        raise SdcmapError(NEEDS_TLS)
    return client
