"""How the services run, and the servers that they use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where the services' records travel."""

    bootstrap_servers: tuple[str, ...] = ("127.0.0.1:9092",)
    """Brokers to ask first, each HOST:PORT."""
    registry_url: str = ""
    """A schema registry with Confluent's API; empty writes Avro's single-object encoding."""
    schemas_folder: str = ""
    """Without a registry: a folder of the schemas (*.avsc) of another version whose records are to be read too."""
    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    sasl_mechanism: str = "PLAIN"
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
    username: str = ""
    """The name for SASL."""
    password: str = ""
    """The password for SASL."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    group_prefix: str = "trawl"
    """Consumer groups are named PREFIX-STAGE."""
    partitions: int = 16
    """Partitions of a topic that is made; a host's records stay on one."""
    replication_factor: int = 1
    """Copies of a topic that is made."""
    record_bytes_max: int = 2_000_000
    """The largest record that brokers take."""
    inline_bytes_max: int = 900_000
    """What is larger, compressed, travels by reference."""
    linger_seconds: float = 0.005
    """A producer waits this long for records to send together."""
    session_seconds: float = 10.0
    """A consumer that is not heard of for this long loses its partitions."""
    request_seconds_max: float = 30.0
    """One request to a broker may take this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """Where the services keep hot state."""

    url: str = "redis://127.0.0.1:6379/0"
    """The server, or with `cluster` one node of it; rediss:// for TLS; user and password stand in it."""
    cluster: bool = False
    """Whether it is a Redis Cluster."""
    prefix: str = "trawl"
    """What every key begins with."""
    timeout_seconds: float = 5.0
    """One command may take this long."""
    connections_max: int = 64
    """Connections of one process."""
    fingerprint_tables: int = 4
    """4: bands of 16 bits; 10: pairs of five blocks, for tens of millions of documents and at most 3 bits."""
    fetched_seconds: float = 3600.0
    """How long a fetch that is done is remembered, so that a task delivered again is not fetched again."""
    politeness_seconds: float = 604_800.0
    """What is known of a host's answers is forgotten after this long without a fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchSettings:
    """Where the services keep pages and chunks."""

    url: str = "http://127.0.0.1:9200"
    """One node, or a load balancer."""
    username: str = ""
    """The name for basic authentication."""
    password: str = ""
    """The password for basic authentication."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    prefix: str = "trawl"
    """What every index, alias and pipeline begins with."""
    shards: int = 1
    """Shards of an index that is made."""
    replicas: int = 0
    """Copies of each shard of an index that is made."""
    refresh_seconds: float = 1.0
    """What is written becomes searchable after this long."""
    hnsw_m: int = 16
    """Links of a vector in the HNSW graph."""
    hnsw_ef_construction: int = 100
    """Candidates looked at when a vector is added."""
    bulk_bytes_max: int = 1_000_000
    """The size of one bulk request."""
    timeout_seconds: float = 30.0
    """One request may take this long."""
    connections_max: int = 16
    """Connections of one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSettings:
    """Where what is too large for a record lies."""

    url: str = "file:blobs"
    """file:FOLDER, which all services share (a relative one lies where they were started), or s3://BUCKET/PREFIX."""
    s3_endpoint: str = ""
    """The URL of an S3-compatible server; empty is AWS."""
    s3_region: str = "us-east-1"
    """The bucket's region."""
    s3_access_key: str = ""
    """The access key; empty takes key and secret from the variables, or the role of the machine, of AWS."""
    s3_secret_key: str = ""
    """The secret of that key."""
    s3_ca_file: str = ""
    """A PEM file of certificate authorities to trust besides the system's."""
    s3_timeout_seconds: float = 30.0
    """One request may take this long; it is tried again for as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedSettings:
    """Which model makes the vectors."""

    url: str = ""
    """An endpoint of the form of OpenAI's, up to and with /v1; empty is the packaged model."""
    model: str = ""
    """The model's name at that endpoint."""
    api_key: str = ""
    """Sent to it as a bearer token."""
    dimensions: int = 0
    """The length of its vectors; needed with a url."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    batch_max: int = 128
    """Texts in one request."""
    timeout_seconds: float = 30.0
    """One request may take this long."""
    attempts_max: int = 5
    """Tries of one request that fails for a time."""
    retry_seconds_max: float = 30.0
    """The longest wait before another try; a longer Retry-After ends the tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How one service process runs."""

    host: str = "127.0.0.1"
    """Where it answers /metrics, /healthz and /readyz."""
    port: int = 0
    """On this port; 0 is any free one, which the log names."""
    in_flight_max: int = 256
    """Records under way in one process."""
    batch_max: int = 64
    """Records taken together where a stage works on batches."""
    release_max: int = 256
    """Fetches that the frontier releases in one turn."""
    outstanding_max: int = 2_000
    """Fetches of one frontier process that are out without an outcome; no further ones are released then."""
    tick_seconds: float = 0.05
    """The longest time between two turns of an idle frontier."""
    retry_seconds: float = 0.5
    """The first wait after a server did not answer, doubling each time."""
    retry_seconds_max: float = 15.0
    """The longest such wait."""
    check_seconds: float = 15.0
    """Between two looks at whether topics, Redis and OpenSearch are as they must be, work or none."""
    stop_seconds_max: float = 20.0
    """What is under way when a process is asked to stop may take this long."""
    log_level: str = "info"
    """debug, info, warning or error."""
