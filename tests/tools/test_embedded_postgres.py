"""The embedded server under real signals.

Who starts it may die, it may die, and nothing is lost or started twice.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from livewell.db.embedded import default_data_dir, start, status, stop
from livewell.db.embedded.binaries import find_binaries
from livewell.db.embedded.folder import LOG_BYTES_KEPT, LOG_BYTES_MAX
from livewell.errors import EmbeddedPostgresError
from tests.faults.embedded_support import (
    ADOPTING_APP,
    DEBIAN_15,
    FAST,
    add_row,
    execute,
    is_gone,
    kept_row,
    kill_server,
    modes_above,
    process_state,
    python_for,
    quick_place,
    running_app,
    said,
    start_with_row,
    stop_everything_below,
    wait_until,
)

linux_only = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux: reads /proc")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: tests how root gives up its rights")
debian_15_only = pytest.mark.skipif(not DEBIAN_15.exists(), reason=f"needs a second Postgres in {DEBIAN_15}")


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder any account can enter (pytest's tmp_path is 0700).

    Every server in it is stopped at the end.
    """
    folder = Path(tempfile.mkdtemp(prefix="lw-", dir=quick_place()))
    folder.chmod(0o755)
    yield folder
    stop_everything_below(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data_dir(base: Path) -> Path:
    """The data folder, not made yet."""
    return base / "data"


@pytest.fixture(scope="session")
def prepared() -> Iterator[Path]:
    """A stopped server's folder, made once.

    Initdb costs a second of processor time, a copy a tenth.
    """
    folder = Path(tempfile.mkdtemp(prefix="lw-", dir=quick_place()))
    folder.chmod(0o755)
    start(folder / "data", parameters=FAST)
    stop(folder / "data")
    (folder / "data" / "port").unlink()
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def made_dir(base: Path, prepared: Path) -> Path:
    """A data folder whose cluster was made before."""
    subprocess.run(["cp", "-a", str(prepared), str(base / "data")], check=True)
    return base / "data"


@pytest.fixture(autouse=True)
def _no_forced_binaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIVEWELL_POSTGRES_BIN", raising=False)


# Starting, stopping, settings


def test_a_first_start_makes_a_cluster_that_is_ready_for_a_queue(data_dir: Path) -> None:
    """UTF8, locale C, safe on disk, reachable on loopback and on the socket."""
    server = start(data_dir)

    assert (server.attached, server.data_dir, server.version.split(".")[0]) == (False, data_dir, "18")
    assert server.socket_dsn is not None
    for dsn in (server.dsn, server.socket_dsn):
        assert execute(dsn, "SELECT current_user || '@' || current_database()") == "livewell@livewell"
    shown = "SELECT string_agg(current_setting(n), ' ') FROM unnest(ARRAY[{}]) n"
    names = ("server_encoding", "fsync", "listen_addresses", "max_connections", "shared_buffers", "timezone")
    listed = ", ".join(f"'{name}'" for name in names)
    assert execute(server.dsn, shown.format(listed)) == "UTF8 on 127.0.0.1 200 128MB UTC"
    assert execute(server.dsn, "SELECT datcollate FROM pg_database WHERE datname = 'livewell'") == "C"


def test_a_start_takes_less_than_two_seconds(made_dir: Path) -> None:
    """The best of three, as other tests may load the machine.

    Making the cluster comes on top, once.
    """
    start(made_dir, parameters=FAST)
    taken = []
    for _ in range(3):
        stop(made_dir)
        began = time.monotonic()
        start(made_dir)
        taken.append(time.monotonic() - began)

    assert min(taken) < 2


def test_only_who_knows_the_password_gets_in(made_dir: Path) -> None:
    """Neither loopback nor the socket trusts a local user, the files are private, and the password is not shown."""
    server = start(made_dir, parameters=FAST)
    password = (made_dir / "password").read_text()

    for dsn in (server.dsn, server.socket_dsn or ""):
        assert password in dsn
        for wrong in (dsn.replace(password, "wrong"), dsn.replace(f":{password}", "")):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(wrong, connect_timeout=5, passfile="/dev/null")
    assert password not in repr(server) + str(server)
    assert (made_dir / "password").stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (made_dir / "pgdata", made_dir / "run")} == {0o700}
    assert made_dir.stat().st_mode & 0o067 == 0


def test_stop_and_status_tell_the_truth(data_dir: Path) -> None:
    """A folder that does not exist has no server, and asking does not make it."""
    assert (status(data_dir), stop(data_dir), data_dir.exists()) == (None, False, False)

    server = start(data_dir, parameters=FAST)
    seen = status(data_dir)
    assert seen is not None
    assert (seen.pid, seen.port, seen.dsn, seen.version) == (server.pid, server.port, server.dsn, server.version)

    assert (stop(data_dir), is_gone(server.pid), status(data_dir), stop(data_dir)) == (True, True, None, False)


def test_an_immediate_stop_loses_nothing(made_dir: Path) -> None:
    """It is a crash on purpose: what was committed is replayed, and the address stays the same."""
    before = start_with_row(made_dir)
    assert stop(made_dir, mode="immediate")

    after = start(made_dir)

    assert (kept_row(after), after.dsn, after.pid == before.pid) == (42, before.dsn, False)


def test_parameters_are_remembered_and_alter_system_wins(made_dir: Path) -> None:
    """A restart keeps what an earlier caller asked for."""
    start(made_dir, parameters={**FAST, "work_mem": "5MB", "application_name": "it's \\ here"})
    stop(made_dir)
    server = start(made_dir)
    assert execute(server.dsn, "SHOW work_mem") == "5MB"
    assert execute(server.dsn, "SELECT reset_val FROM pg_settings WHERE name = 'application_name'") == "it's \\ here"

    execute(server.dsn, "ALTER SYSTEM SET work_mem = '7MB'")
    stop(made_dir)

    assert execute(start(made_dir).dsn, "SHOW work_mem") == "7MB"


def test_a_wrong_parameter_is_reported_and_not_remembered(data_dir: Path) -> None:
    """The error carries what the server said; the next start without it works."""
    with pytest.raises(EmbeddedPostgresError, match=r"(?s)shared_buffers.*server\.log"):
        start(data_dir, parameters={**FAST, "shared_buffers": "banana"})

    assert not start(data_dir, parameters=FAST).attached


@pytest.mark.parametrize("parameters", [{"port": "5432"}, {"Fsync": "off"}, {"work_mem": "1MB'\nfsync = off"}])
def test_a_parameter_that_is_ours_or_none_at_all_is_refused(data_dir: Path, parameters: dict[str, str]) -> None:
    """Before anything is made."""
    with pytest.raises(EmbeddedPostgresError, match="parameter"):
        start(data_dir, parameters=parameters)

    assert not data_dir.exists()


def test_a_port_that_was_taken_meanwhile_is_replaced(made_dir: Path) -> None:
    """The old port is preferred, not required."""
    before = start(made_dir, parameters=FAST)
    stop(made_dir)
    with closing(socket.socket()) as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", before.port))
        squatter.listen()

        after = start(made_dir)

        assert after.port != before.port
        assert execute(after.dsn, "SELECT 1") == 1


def test_the_log_is_bounded(made_dir: Path) -> None:
    """A log above the bound is cut to its end, at a start and at an attach."""
    start(made_dir, parameters=FAST)
    log = made_dir / "server.log"
    os.truncate(log, LOG_BYTES_MAX + 1)

    assert start(made_dir).attached

    assert log.stat().st_size <= LOG_BYTES_KEPT + 10_000


def test_a_path_too_long_for_a_socket_still_has_tcp(base: Path) -> None:
    """Unix sockets end at about 100 bytes; the server does not fail for that."""
    server = start(base / ("long" * 25) / "a folder, with 'odd' $(signs)", parameters=FAST)

    assert (server.socket_dsn, execute(server.dsn, "SELECT 1")) == (None, 1)


def test_a_socket_path_with_odd_signs_works(base: Path) -> None:
    """Spaces, quotes and dollars are neither split nor run by a shell."""
    server = start(base / "a 'b' $(c) %d", parameters=FAST)

    assert execute(server.socket_dsn or "", "SELECT 1") == 1


def test_a_folder_with_other_files_is_refused_and_left_alone(data_dir: Path) -> None:
    """A mistyped data folder must not have its mode changed."""
    data_dir.mkdir(mode=0o755)
    (data_dir / "thesis.txt").write_text("mine")
    before = data_dir.stat().st_mode

    with pytest.raises(EmbeddedPostgresError, match="LIVEWELL_DATA_DIR"):
        start(data_dir)

    assert (data_dir.stat().st_mode, [path.name for path in data_dir.iterdir()]) == (before, ["thesis.txt"])


# Dying


@linux_only
def test_the_server_outlives_an_app_that_was_killed(made_dir: Path) -> None:
    """kill -9 of the app: the next one attaches to the same process."""
    with running_app(made_dir) as app:
        pid, attached = said(app)
        app.kill()
        app.wait()

    server = start(made_dir)

    assert (attached, server.attached, server.pid) == (False, True, pid)
    assert execute(server.dsn, "SELECT 1") == 1


@linux_only
def test_ctrl_c_in_the_app_does_not_reach_the_server(made_dir: Path) -> None:
    """The terminal signals the app's whole process group, and the server is in another one."""
    with running_app(made_dir) as app:
        pid, _ = said(app)
        os.killpg(app.pid, signal.SIGINT)
        app.wait(timeout=60)

    assert (os.getpgid(pid) == app.pid, is_gone(pid), start(made_dir).pid) == (False, False, pid)


@linux_only
def test_a_killed_server_is_started_again_with_its_data(made_dir: Path) -> None:
    """kill -9 of the postmaster, with sessions open; the address stays the same."""
    before = start_with_row(made_dir)
    with psycopg.connect(before.dsn):
        kill_server(before.pid)
        assert status(made_dir) is None
        after = start(made_dir)

    assert (after.attached, kept_row(after), after.dsn) == (False, 42, before.dsn)


@linux_only
def test_a_killed_server_that_is_still_a_zombie_is_started_again(made_dir: Path) -> None:
    """Its parent is frozen and never reaps, so the process id in postmaster.pid still exists."""
    with running_app(made_dir, code=ADOPTING_APP) as app:
        pid, _ = said(app)
        add_row(start(made_dir))
        app.send_signal(signal.SIGSTOP)
        kill_server(pid)
        assert process_state(pid) == "Z"
        assert status(made_dir) is None

        after = start(made_dir)

        assert (after.attached, kept_row(after), process_state(pid)) == (False, 42, "Z")


@linux_only
@pytest.mark.parametrize("zombie", [False, True], ids=["reaped", "zombie"])
def test_postmaster_pid_stays_while_an_old_backend_lives(made_dir: Path, zombie: bool) -> None:
    """No second server beside an old backend; once that has ended, the data is served again.

    Proven by removing the ORPHANED branch of life_of: with the zombie, postmaster.pid was gone at
    the first assert.
    """
    pid_file = made_dir / "pgdata" / "postmaster.pid"
    with running_app(made_dir, code=ADOPTING_APP if zombie else "pass") as app, ExitStack() as cleanup:
        if zombie:
            said(app)
            app.send_signal(signal.SIGSTOP)
        before = start_with_row(made_dir)
        connection = cleanup.enter_context(psycopg.connect(before.dsn, autocommit=True))
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        cleanup.callback(os.kill, backend, signal.SIGCONT)
        kill_server(before.pid)
        wait_until(lambda: process_state(before.pid) == ("Z" if zombie else ""), "the system has reaped the server")
        content = pid_file.read_text()

        with pytest.raises(EmbeddedPostgresError, match="sessions of it still run"):
            start(made_dir, wait_seconds=1)
        assert (pid_file.read_text(), process_state(backend)) == (content, "T")
        assert not stop(made_dir)

        cleanup.close()
        after = start(made_dir)

        assert (after.attached, kept_row(after), is_gone(backend)) == (False, 42, True)


@linux_only
def test_a_process_id_that_is_somebody_elses_now_does_not_block_the_start(made_dir: Path) -> None:
    """After a reboot the number in postmaster.pid may be any program's.

    It is neither attached to nor signalled.
    """
    before = start_with_row(made_dir)
    kill_server(before.pid)
    owner = (made_dir / "pgdata").stat()
    as_owner = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "300"], cwd="/", **as_owner) as stranger:  # type: ignore[call-overload]
        try:
            pid_file = made_dir / "pgdata" / "postmaster.pid"
            pid_file.write_text(pid_file.read_text().replace(str(before.pid), str(stranger.pid), 1))
            assert (status(made_dir), stop(made_dir)) == (None, False)

            after = start(made_dir)

            assert (after.attached, kept_row(after), stranger.poll()) == (False, 42, None)
        finally:
            stranger.kill()


@linux_only
def test_a_frozen_server_is_an_error_and_never_a_second_server(made_dir: Path) -> None:
    """It holds the data; the error names the process, in bounded time."""
    server = start(made_dir, parameters=FAST)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedPostgresError, match=f"process {server.pid}"):
            start(made_dir, wait_seconds=1)
    finally:
        os.kill(server.pid, signal.SIGCONT)

    assert start(made_dir).pid == server.pid


@linux_only
def test_an_initdb_that_was_killed_is_done_again(data_dir: Path) -> None:
    """The half-made cluster is never used."""
    with running_app(data_dir) as app:
        wait_until(lambda: any(data_dir.glob("init-*/PG_VERSION")), "initdb has begun")
        app.kill()
        app.wait()
        assert not (data_dir / "pgdata").exists()

    server = start(data_dir, parameters=FAST)
    assert (server.attached, execute(server.dsn, "SELECT 1")) == (False, 1)
    stop(data_dir)
    start(data_dir)
    assert list(data_dir.glob("init-*")) == []


def test_ten_processes_starting_at_once_share_one_server(data_dir: Path) -> None:
    """One makes the cluster and starts, nine attach."""
    with ExitStack() as apps:
        running = [apps.enter_context(running_app(data_dir)) for _ in range(10)]
        answers = [said(app) for app in running]

    assert len({pid for pid, _ in answers}) == 1
    assert sorted(attached for _, attached in answers) == [False] + [True] * 9


# Accounts


@root_only
def test_as_root_the_server_runs_as_an_existing_account_and_nothing_outside_changes(data_dir: Path) -> None:
    """No account is made, no mode outside the data folder is touched, the package least of all."""
    package = find_binaries().package
    assert package is not None
    accounts = Path("/etc/passwd").read_bytes()
    before = modes_above(data_dir) | modes_above(package / "pginstall" / "bin")

    server = start(data_dir, parameters=FAST)

    runs_as = pwd.getpwuid(Path(f"/proc/{server.pid}").stat().st_uid).pw_name
    assert runs_as in ("postgres", "nobody")
    assert Path("/etc/passwd").read_bytes() == accounts
    assert modes_above(data_dir) | modes_above(package / "pginstall" / "bin") == before


@root_only
def test_as_root_a_package_the_account_cannot_read_is_copied(base: Path, data_dir: Path) -> None:
    """A virtualenv under /root: the copy in the data folder runs, and the package keeps its modes."""
    found = find_binaries().package
    assert found is not None
    site = base / "site"
    for source in (found, found.with_name(found.name + ".libs")):
        shutil.copytree(source, site / source.name)
    site.chmod(0o700)

    with running_app(data_dir, path=str(site)) as app:
        pid, _ = said(app)

    program = Path(f"/proc/{pid}/exe").readlink()
    assert program.is_relative_to(data_dir / "binaries")
    assert site.stat().st_mode & 0o777 == 0o700
    stop(data_dir)
    assert kept_row(start_with_row(data_dir)) == 42


@root_only
def test_as_root_a_data_folder_the_account_cannot_reach_is_an_error(base: Path) -> None:
    """The error names the shut folder and the variable; nothing is made, no mode is changed."""
    shut = base / "shut"
    shut.mkdir(mode=0o700)

    with pytest.raises(EmbeddedPostgresError, match=f"pass through {shut} to .*LIVEWELL_DATA_DIR"):
        start(shut / "data")

    assert (list(shut.iterdir()), shut.stat().st_mode & 0o777) == ([], 0o700)


@root_only
def test_as_root_an_umask_does_not_shut_the_account_out(base: Path) -> None:
    """Folders we make on the way are passable even under umask 077."""
    before = os.umask(0o077)
    try:
        server = start(base / "state" / "livewell" / "key", parameters=FAST)
    finally:
        os.umask(before)

    assert execute(server.dsn, "SELECT 1") == 1


@root_only
@linux_only
def test_an_ordinary_user_starts_a_server_of_its_own(base: Path) -> None:
    """It runs as that user, in a 0700 folder, and survives its app and its own kill -9."""
    user = pwd.getpwnam("nobody")
    python = python_for(user.pw_uid)
    if python is None:
        pytest.skip("no Python here that the user `nobody` can run")
    home = base / "home"
    home.mkdir()
    os.chown(home, user.pw_uid, user.pw_gid)
    data_dir = home / "data"

    for died in (False, True):
        with running_app(data_dir, uid=user.pw_uid, python=python) as app:
            pid, attached = said(app)
        assert (attached, Path(f"/proc/{pid}").stat().st_uid) == (False, user.pw_uid)
        with running_app(data_dir, uid=user.pw_uid, python=python) as app:
            assert said(app) == (pid, True)
        if not died:
            kill_server(pid)

    assert (data_dir.stat().st_mode & 0o777, data_dir.stat().st_uid) == (0o700, user.pw_uid)
    with pytest.raises(EmbeddedPostgresError, match="belongs to user"):
        start(data_dir)
    assert stop(data_dir)


def test_the_default_folder_lies_in_the_current_one(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the account can get there."""
    if os.geteuid() != 0:
        base.chmod(0o700)
    monkeypatch.chdir(base)

    assert default_data_dir() == base / ".livewell"


@root_only
def test_the_default_folder_is_elsewhere_when_the_current_one_is_shut(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in its own home: a place keyed by the folder, always the same."""
    (base / "shut").mkdir(mode=0o700)
    monkeypatch.chdir(base / "shut")

    elsewhere = default_data_dir()

    assert (elsewhere.is_relative_to(base), elsewhere.parent, default_data_dir()) == (
        False,
        Path("/var/lib/livewell"),
        elsewhere,
    )


# Another major version


@debian_15_only
def test_data_of_another_major_version_is_named_and_left_alone(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """15 runs when asked for; 18 refuses its data, names both and the programs that fit, and changes nothing."""
    monkeypatch.setenv("LIVEWELL_POSTGRES_BIN", str(DEBIAN_15))
    old = start_with_row(data_dir)
    assert (old.version.split(".")[0], kept_row(old)) == ("15", 42)
    monkeypatch.delenv("LIVEWELL_POSTGRES_BIN")
    assert start(data_dir).attached
    stop(data_dir)
    before = {path: path.stat().st_mtime_ns for path in (data_dir / "pgdata").rglob("*")}

    with pytest.raises(EmbeddedPostgresError, match=f"Postgres 15.* 18.*LIVEWELL_POSTGRES_BIN={DEBIAN_15}"):
        start(data_dir)
    assert {path: path.stat().st_mtime_ns for path in (data_dir / "pgdata").rglob("*")} == before

    monkeypatch.setenv("LIVEWELL_POSTGRES_BIN", str(DEBIAN_15))
    assert kept_row(start(data_dir)) == 42


@debian_15_only
@linux_only
def test_postgres_15_is_started_again_after_a_kill(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same promises on the oldest version we support."""
    monkeypatch.setenv("LIVEWELL_POSTGRES_BIN", str(DEBIAN_15))
    before = start_with_row(data_dir)
    kill_server(before.pid)

    assert kept_row(start(data_dir)) == 42
