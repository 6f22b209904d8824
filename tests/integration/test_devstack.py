"""The servers of `devstack`: started once, found again, stopped alone, and made of nothing but what was pinned."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from devstack import __main__ as command_line
from devstack import guard, packages, process, stack
from devstack.process import DevstackError, Process, free_port, is_open
from devstack.server import answers
from devstack.servers import KafkaServer, RedisServer
from tests.site.process import WebProcess
from tests.site.responders.prose import title

CHECKOUT: Final = Path(__file__).resolve().parents[2]
_WAIT_SECONDS_MAX: Final = 20.0


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_SECONDS_MAX
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def listening() -> Iterator[int]:
    """A port that another process, this one, listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", free_port()) as server:
        yield server


def test_a_server_is_started_once_and_found_again(redis: RedisServer) -> None:
    pid = redis.process.pid
    again = RedisServer(redis.folder, redis.port)

    again.start()

    assert again.process.pid == pid is not None
    assert again.healthy()
    assert again.process.memory_bytes > 2**20
    assert "Ready to accept connections" in again.process.last_lines()


def test_a_server_is_stopped_by_whoever_finds_it_and_only_once(redis: RedisServer) -> None:
    again = RedisServer(redis.folder, redis.port)

    again.stop()
    again.stop()

    assert redis.process.pid is None
    assert redis.process.memory_bytes == 0
    assert not redis.healthy()
    assert not is_open(redis.port)


def test_redis_keeps_what_it_has_over_a_kill(redis: RedisServer) -> None:
    redis.ask("SET", "key", "value")

    redis.kill()
    assert not is_open(redis.port)
    redis.start()

    assert redis.ask("GET", "key") == "value"


@pytest.mark.parametrize(
    "mark", ['{{"pid": {pid}, "began": "17", "log_from": 0}}', '{{"pid": {pid}}}', "{pid}", "[]", ""]
)
def test_a_process_that_is_not_ours_is_left_alone(tmp_path: Path, mark: str) -> None:
    server = RedisServer(tmp_path, free_port())
    with subprocess.Popen(["sleep", "600"]) as foreign:
        (tmp_path / "redis.pid").write_text(mark.format(pid=foreign.pid))

        assert server.process.pid is None
        server.stop()
        server.kill()

        assert foreign.poll() is None
        foreign.kill()


def test_a_process_that_does_not_end_is_killed_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_STOP_SECONDS_MAX", 1.0)
    stubborn = Process("stubborn", tmp_path)
    stubborn.start(["sh", "-c", "trap '' TERM; sleep 600 & echo $!; wait; wait"], os.environ)
    wait_until(lambda: stubborn.text().strip() != "")
    child = int(stubborn.text())

    stubborn.stop()

    assert stubborn.pid is None
    wait_until(lambda: process._began(child) == "")


def test_a_long_log_is_put_aside_when_its_process_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LOG_BYTES_MAX", 3)
    talker = Process("talker", tmp_path)
    for word in ("one", "two", "three"):
        talker.start(["printf", word], {})
        wait_until(lambda: talker.pid is None)

    assert talker.log.with_suffix(".log.1").read_text() == "onetwo"
    assert talker.log.read_text() == "three"


def test_a_port_in_use_is_named_with_the_variable_that_chooses_another(tmp_path: Path) -> None:
    with listening() as port:
        server = RedisServer(tmp_path, port)

        with pytest.raises(DevstackError, match=rf"redis cannot start: .* port {port}; .* DEVSTACK_REDIS_PORT"):
            server.start()

        assert server.process.pid is None
        assert is_open(port)


def test_every_port_of_a_server_must_be_free(tmp_path: Path) -> None:
    with listening() as port:
        server = KafkaServer(tmp_path, free_port(), port)

        with pytest.raises(
            DevstackError, match=rf"kafka cannot start: .* port {port}; .* DEVSTACK_KAFKA_CONTROLLER_PORT"
        ):
            server.start()


def test_a_server_that_ends_at_its_start_tells_why(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, free_port())
    server.settings = {"no-such-setting": "yes"}
    server.install()

    with pytest.raises(
        DevstackError, match=r"redis has ended at its start; the end of .*redis.log:\n(.*\n)*.*no-such-se"
    ):
        server.start()

    assert server.process.pid is None


def test_a_server_that_does_not_serve_in_time_is_named_with_its_log(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, free_port())
    server.settings = {"requirepass": "secret"}
    server.start_seconds_max = 1.0
    server.install()

    with pytest.raises(DevstackError, match=r"redis does not serve after 1 s; the end of .*redis.log:\n"):
        server.start()

    server.stop()


def test_servers_end_with_the_process_that_needed_them_even_if_that_is_killed(tmp_path: Path) -> None:
    folder, port = tmp_path / "redis", free_port()
    code = (
        "import sys, time; from pathlib import Path; from devstack import guard\n"
        "from devstack.servers import RedisServer\n"
        "guard.forget(Path(sys.argv[1]))\n"
        "with RedisServer(Path(sys.argv[1]), int(sys.argv[2])): print('up', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(folder), str(port)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        server = RedisServer(folder, port)
        assert server.healthy()

        run.send_signal(signal.SIGKILL)

        wait_until(lambda: server.process.pid is None)
        wait_until(lambda: not is_open(port))
        wait_until(lambda: not folder.exists())


async def topics(server: KafkaServer, *, make: str = "") -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=server.bootstrap)
    await admin.start()
    try:
        if make:
            await admin.create_topics([NewTopic(make, 1, 1)])
        return set(await admin.list_topics())
    finally:
        await admin.close()


async def test_kafka_is_started_once_survives_a_kill_and_serves_as_soon_as_it_is_said_to(tmp_path: Path) -> None:
    ports = free_port(), free_port()
    with KafkaServer(tmp_path / "kafka", *ports) as server:
        pid = server.process.pid
        KafkaServer(tmp_path / "kafka", *ports).start()
        assert server.process.pid == pid
        assert "first" in await topics(server, make="first")

        server.kill()
        assert not server.healthy()
        server.start()

        assert server.process.pid not in {None, pid}
        assert await topics(server, make="second") >= {"first", "second"}
    assert not is_open(server.port)


NAMED: Final = ("prometheus", "opensearch")
POM: Final = """<project><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId>
<version>1</version><packaging>pom</packaging><dependencies><dependency><groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId>
<version>1.7.36</version></dependency></dependencies><build><plugins><plugin><groupId>org.apache.maven.plugins</groupId>
<artifactId>maven-dependency-plugin</artifactId><version>3.6.1</version><executions><execution><id>get</id>
<phase>process-resources</phase><goals><goal>copy-dependencies</goal></goals><configuration>
<outputDirectory>${os.stage}</outputDirectory></configuration></execution></executions></plugin></plugins></build></project>
"""
JAR: Final = "slf4j-api-1.7.36.jar"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server of one small artifact, with a cache of its own; its checksum is wrong."""
    monkeypatch.setattr(packages, "ROOT", tmp_path / "recipes")
    monkeypatch.setattr(packages, "CACHE", tmp_path / "cache")
    folder = tmp_path / "recipes" / "tiny"
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(POM)
    (folder / "checksums.txt").write_text(f"{'0' * 64}  {JAR}\n")
    return folder


def test_an_artifact_with_a_wrong_checksum_is_refused_and_nothing_of_it_is_kept(recipe: Path) -> None:
    with pytest.raises(DevstackError, match=rf"{JAR} of tiny has the SHA-256 [0-9a-f]{{64}}, not 0{{64}}: .*pin tiny"):
        packages.maven("tiny")

    assert [*(recipe.parents[1] / "cache").iterdir()] == []


def test_pinned_artifacts_are_fetched_once(recipe: Path, capfd: pytest.CaptureFixture[str]) -> None:
    packages.pin("tiny")
    pinned = (recipe / "checksums.txt").read_text()
    capfd.readouterr()

    folder = packages.maven("tiny")
    assert "fetching the artifacts of tiny, once" in capfd.readouterr().err
    jar = (folder / JAR).read_bytes()
    assert packages.maven("tiny") == folder

    assert pinned == f"{packages.checksums(folder)[0][1]}  {JAR}\n"
    assert jar.startswith(b"PK")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("change", ["missing", "extra", "altered"])
def test_what_was_fetched_is_exactly_what_was_pinned(recipe: Path, tmp_path: Path, change: str) -> None:
    folder = tmp_path / "fetched"
    folder.mkdir()
    (folder / JAR).write_bytes(b"PK")
    (recipe / "checksums.txt").write_text("".join(f"{digest}  {name}\n" for name, digest in packages.checksums(folder)))
    packages.check("tiny", folder)
    match change:
        case "missing":
            (folder / JAR).unlink()
        case "extra":
            (folder / "other.jar").write_bytes(b"PK")
        case _:
            (folder / JAR).write_bytes(b"PK ")

    with pytest.raises(DevstackError, match="it is not the artifact that was pinned"):
        packages.check("tiny", folder)


def test_artifacts_that_do_not_exist_are_an_error_that_names_them(recipe: Path) -> None:
    (recipe / "pom.xml").write_text(POM.replace("1.7.36", "0.0.0-none"))

    with pytest.raises(DevstackError, match=r"the artifacts of tiny could not be fetched: (.*\n)*.*slf4j-api"):
        packages.maven("tiny")


def test_a_command_that_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(
        DevstackError, match=r"the command redis-server is missing; .*: sudo apt-get install redis-server"
    ):
        packages.require("redis-server", "redis-server")


def test_a_folder_that_a_plain_user_cannot_enter_is_told(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)

    assert packages.closed(Path("/usr/bin/env")) is None
    assert packages.closed(shut / "data") in {*shut.parents, shut}


@pytest.fixture
def elsewhere(servers_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stack with its data, where a plain user can reach it, and all its ports elsewhere."""
    folder = servers_folder / tmp_path.name
    folder.mkdir()
    monkeypatch.setattr(stack, "FOLDER", folder)
    ports: set[int] = set()
    while len(ports) < len(stack.PORTS):
        ports.add(free_port())
    for name, port in zip(stack.PORTS, ports, strict=True):
        monkeypatch.setenv(f"DEVSTACK_{name.upper()}_PORT", str(port))
    return folder


def test_the_command_line_shows_what_runs_and_stops_only_that(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = next(server for server in stack.servers() if isinstance(server, RedisServer))
    with server:
        pid = server.process.pid
        assert command_line.main(["ps"]) == 0
        table = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
        memory = table["redis"].pop(3)
        assert int(memory) > 1
        log = str(server.process.log)
        assert table["redis"] == ["healthy", str(pid), str(server.port), "MB", server.url, log]
        assert {name: row[0] for name, row in table.items() if name not in {"name", "redis"}} == dict.fromkeys(
            ("kafka", "registry", "opensearch", "prometheus", *stack.SERVICES), "stopped"
        )

        assert command_line.main(["logs", "redis"]) == 0
        assert "Ready to accept connections" in capsys.readouterr().out

        assert command_line.main(["down"]) == 0
        assert capsys.readouterr().out.split() == ["redis", "stopped"]
        assert server.process.pid is None
    assert elsewhere / "redis" == server.folder


def test_the_command_line_tells_a_shell_where_the_stack_is(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["env"]) == 0

    shell = f"{capsys.readouterr().out}\nenv"
    done = subprocess.run(["sh", "-c", shell], env={}, capture_output=True, text=True, check=True)
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert {name: text for name, text in told.items() if name.startswith("TRAWL_")} == stack.variables()
    assert told["TRAWL_BLOBS_URL"] == f"file:{elsewhere}/blobs"


def test_a_service_that_does_not_get_ready_says_what_it_waits_for(elsewhere: Path) -> None:
    service = stack.services()[-1]
    service.start_seconds_max = 8.0

    with pytest.raises(DevstackError) as caught:
        service.start()

    service.stop()
    text = str(caught.value)
    assert re.match(r"indexer does not serve after 8 s; it waits for:\n.*Kafka.*\nthe end of .*indexer.log:\n", text)
    assert service.process.log == elsewhere / "indexer" / "indexer.log"


def test_the_command_line_tells_an_error_in_one_line(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command_line.main(["logs", "redsi"]) == 1
    assert "devstack: there is no redsi here; there are redis, kafka" in capsys.readouterr().err

    monkeypatch.setenv("DEVSTACK_KAFKA_PORT", "many")
    assert command_line.main(["ps"]) == 1
    assert "devstack: DEVSTACK_KAFKA_PORT = 'many' is no port" in capsys.readouterr().err
    assert [*elsewhere.iterdir()] == []


def test_what_up_cannot_start_is_told_with_what_to_do(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as port:
        monkeypatch.setenv("DEVSTACK_REDIS_PORT", str(port))
        assert command_line.main(["up"]) == 1
    told = capsys.readouterr().err
    assert f"another process listens on port {port}" in told
    assert "run make up again" in told
    assert [*elsewhere.iterdir()] == []


def test_settings_that_cannot_be_used_are_not_taken_for_wrong_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_KAFKA_PARTITIONS", "many")
    with pytest.raises(DevstackError, match=r"^the settings cannot be used: .*kafka\.partitions = 'many'"):
        command_line._make_topics()


@pytest.fixture
def tiny_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebProcess]:
    """A fake web of a dozen pages that what is started here reaches, without waits; paths are told as from a shell."""
    with WebProcess("tiny:tiny.test:12") as web:
        settings = tmp_path / "trawl.toml"
        settings.write_text("[politeness]\ndelay_seconds = 0.01\n")
        monkeypatch.setenv("TRAWL_FETCH_PROXY", web.proxy)
        monkeypatch.setenv("TRAWL_FETCH_CA_FILE", os.path.relpath(web.ca_file))
        monkeypatch.setenv("TRAWL_SETTINGS", os.path.relpath(settings))
        yield web


def _trawl(*arguments: str) -> str:
    """What the command says with the settings of the stack; a search may end with 1 (no hits) or 3 (no index)."""
    command = [sys.executable, "-m", "trawl", *arguments]
    done = subprocess.run(command, env={**os.environ, **stack.variables()}, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or (arguments[0] == "search" and done.returncode in {1, 3}), done.stderr
    return done.stdout


def _found(url: str) -> list[dict[str, Any]]:
    """What a search in the stack finds, the best hit first."""
    hits: list[dict[str, Any]] = json.loads(
        _trawl("search", "--opensearch", url, "--json", "--limit", "99", title(7)) or "[]"
    )
    return hits


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("tiny_web")
def test_the_whole_stack_starts_crawls_a_seed_stays_when_started_again_and_stops(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = [*stack.servers(), *stack.services()]
    for one in everything:
        guard.watch(one.process)
    try:
        assert command_line.main(["up"]) == 0, capsys.readouterr().err
        pids = {one.name: one.process.pid for one in everything}
        assert all(one.healthy() for one in everything)
        prometheus, opensearch = (next(one for one in everything if one.name == name) for name in NAMED)
        told = capsys.readouterr().out
        assert "trawl seed http" in told
        assert f"trawl search --opensearch {opensearch.url} " in told
        wait_until(lambda: _scraped(prometheus.url) == dict.fromkeys((str(s.port) for s in stack.services()), "up"))

        _trawl("seed", "http://tiny.test/")
        wait_until(lambda: len({hit["url"] for hit in _found(opensearch.url)}) == 12)
        assert _found(opensearch.url)[0]["title"] == title(7)
        assert _trawl("dlq", "list") == "0 dead letters, 0 never sent again\n"

        assert command_line.main(["down", "dedup"]) == 0
        assert capsys.readouterr().out.split() == ["dedup", "stopped"]
        assert command_line.main(["up"]) == 0
        pids["dedup"] = stack.services()[3].process.pid
        assert {one.name: one.process.pid for one in everything} == pids
        assert len(re.findall("^[a-z]+ +runs already ", capsys.readouterr().out, re.MULTILINE)) == len(everything) - 1
    finally:
        assert command_line.main(["down"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        one.name for one in reversed(everything)
    ]
    assert [port for one in everything for port in one.ports.values() if is_open(port)] == []
    assert {path.name for path in elsewhere.iterdir()} >= set(pids)


def _scraped(url: str) -> dict[str, str]:
    """What Prometheus says of each target, by its port."""
    found = json.loads(answers(f"{url}/api/v1/targets") or b"{}")["data"]["activeTargets"]
    return {target["scrapeUrl"].split("/")[2].rpartition(":")[2]: target["health"] for target in found}
