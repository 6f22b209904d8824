"""An OpenSearch node from its artifacts, as the archive of a distribution would hold it."""

from pathlib import Path
from typing import Final

VERSION: Final = "2.19.1"
_MODULES: Final = {
    "transport-netty4": ("org.opensearch.transport.Netty4Plugin", "", "Netty 4 transport and HTTP"),
    "lang-painless": ("org.opensearch.painless.PainlessPlugin", "", "Painless scripting"),
    "analysis-common": (
        "org.opensearch.analysis.common.CommonAnalysisPlugin", "lang-painless", "Built-in analyzers"
    ),
    "mapper-extras": ("org.opensearch.index.mapper.MapperExtrasPlugin", "", "Extra field mappers"),
    "reindex": ("org.opensearch.index.reindex.ReindexPlugin", "", "reindex, update_by_query, delete_by_query"),
}  # fmt: skip
"""By module its class, the plugin that it extends, and what it is."""
_POLICIES: Final = {
    "transport-netty4": """grant {
  permission java.io.FilePermission "/proc/sys/net/core/somaxconn", "read";
  permission java.net.SocketPermission "*", "accept,connect";
  permission java.lang.RuntimePermission "*", "setContextClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
  permission java.util.PropertyPermission "sun.nio.ch.bugLevel", "write";
};
""",
    "lang-painless": """grant {
  permission java.lang.RuntimePermission "createClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
};
""",
    "reindex": """grant {
  permission java.net.SocketPermission "*", "connect";
};
""",
}
_LOGGING: Final = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] [%node_name]%marker %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


def assemble(home: Path) -> None:
    """Add to the artifacts of a node the descriptors and policies of its modules; once, since nodes share them."""
    done = home / ".assembled"
    if done.exists():
        return
    (home / "bin").mkdir(exist_ok=True)
    for module, (cls, extended, description) in _MODULES.items():
        (home / "modules" / module / "plugin-descriptor.properties").write_text(
            f"description={description}\nversion={VERSION}\nname={module}\nclassname={cls}\njava.version=11\n"
            f"opensearch.version={VERSION}\nextended.plugins={extended}\nhas.native.controller=false\n"
        )
    for module, policy in _POLICIES.items():
        (home / "modules" / module / "plugin-security.policy").write_text(policy)
    for path in home.rglob("*"):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    done.touch()


def configure(folder: Path, port: int, transport_port: int) -> None:
    """Write the configuration of a node, and make its folders."""
    for name in ("config", "indices", "logs", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "cluster.name": "trawl-devstack",
        "node.name": "devstack-1",
        "network.host": "127.0.0.1",
        "http.port": port,
        "transport.port": transport_port,
        "discovery.type": "single-node",
        "path.data": folder / "indices",
        "path.logs": folder / "logs",
        "action.auto_create_index": "false",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }
    (folder / "config" / "opensearch.yml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    (folder / "config" / "log4j2.properties").write_text(_LOGGING)


def command(java: str, folder: Path, home: Path, heap: str) -> list[str]:
    """The Java process of a node."""
    temporary = folder / "tmp"
    return [
        java, f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-XX:MaxDirectMemorySize=256m",
        "-XX:+ExitOnOutOfMemoryError", f"-XX:ErrorFile={folder}/logs/hs_err_%p.log",
        "-Dfile.encoding=UTF-8", "-Djava.awt.headless=true",
        "-Djava.locale.providers=SPI,COMPAT", "-Djava.security.manager=allow", f"-Djava.io.tmpdir={temporary}",
        f"-Djna.tmpdir={temporary}", "-Djna.nosys=true", "-Dopensearch.networkaddress.cache.ttl=60",
        "-Dopensearch.networkaddress.cache.negative.ttl=10", "-Dio.netty.noUnsafe=true",
        "-Dio.netty.noKeySetOptimization=true", "-Dio.netty.recycler.maxCapacityPerThread=0",
        "-Dio.netty.allocator.numDirectArenas=0", "-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true",
        "-Dlog4j2.formatMsgNoLookups=true", f"-Dopensearch.path.home={home}", f"-Dopensearch.path.conf={folder}/config",
        "-Dopensearch.distribution.type=tar", "-Dopensearch.bundled_jdk=false",
        "-cp", f"{home}/lib/*", "org.opensearch.bootstrap.OpenSearch",
    ]  # fmt: skip
