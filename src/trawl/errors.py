"""Every exception of Trawl, each for a bug, a wrong call or dead infrastructure.

Expected failures of the web (a 404, a robots refusal, a body over its cap) are records with a named reason, never
exceptions.

    TrawlError
    ├── SettingsError            a setting has a value that cannot be used
    ├── InvalidUrlError          a text is not a URL that Trawl can fetch
    ├── UnknownSchemaError       bytes name a schema that this version does not hold
    ├── RecordDecodeError        bytes are not a record of the schema they claim
    ├── StoreError               a store cannot serve; nothing was lost
    │   ├── StoreInUseError      another run holds the output folder
    │   ├── StoreTooNewError     the store was written by a newer version
    │   ├── StoreFullError       the disk or the memory behind a store is full
    │   ├── StoreCorruptError    the store's content is damaged
    │   └── StaleEpochError      this owner's lease of a shard was taken over
    ├── KafkaError               Kafka or its schema registry cannot serve; nothing was lost
    │   ├── KafkaUnavailableError  no broker answers
    │   ├── KafkaRefusedError    a broker refuses: a name, a password, a right
    │   ├── TopicError           a topic is missing, or is not as the topology says
    │   └── SchemaRegistryError  the schema registry does not answer, or refuses a schema
    ├── RecordRefusedError       a store will never take this record; others it will
    │   └── RecordTooLargeError  a record is larger than a topic takes
    ├── BlobNotFoundError        a reference points at no blob
    ├── FetchRefusedError        a single fetch brought no page
    ├── EmbedderError            the embeddings endpoint cannot serve; nothing was lost
    ├── EmbedderMismatchError    an index holds vectors of another model
    └── WorkerDiedError          an extraction worker process ended without an answer
"""


class TrawlError(Exception):
    """The root of all errors that Trawl raises on purpose; its text says what happened, to what, and what to do."""


class SettingsError(TrawlError, ValueError):
    """A setting has a value that cannot be used; the text names the setting, the value and the allowed range."""


class InvalidUrlError(TrawlError, ValueError):
    """A text is not an absolute http or https URL by the WHATWG URL standard."""


class UnknownSchemaError(TrawlError):
    """Bytes carry the fingerprint or id of a schema that is not among the known ones."""


class RecordDecodeError(TrawlError):
    """Bytes cannot be read as the record that their schema promises."""


class StoreError(TrawlError):
    """A store cannot serve a request; the caller retries later or stops, and nothing was lost."""


class StoreInUseError(StoreError):
    """Another run holds the lock of the output folder."""

    holder = 0
    """The process id of that run, if it is known."""


class StoreTooNewError(StoreError):
    """The store was written by a newer version of Trawl; upgrade Trawl or name another folder."""


class StoreFullError(StoreError):
    """The disk or the memory behind a store is full; free space and run the same command again."""


class StoreCorruptError(StoreError):
    """The store's content is damaged and cannot be read."""


class StaleEpochError(StoreError):
    """The caller's lease of a frontier shard has been taken over by another owner."""


class KafkaError(TrawlError):
    """Kafka or its schema registry cannot serve; the caller retries later or stops, and nothing was lost."""


class KafkaUnavailableError(KafkaError):
    """No broker answers at the addresses of `kafka.bootstrap_servers`."""


class KafkaRefusedError(KafkaError):
    """A broker refuses a request: the name or password, or the right to a topic or group."""


class TopicError(KafkaError):
    """A topic is missing, or has other partitions or settings than the topology says."""


class SchemaRegistryError(KafkaError):
    """The schema registry does not answer, or refuses a schema as incompatible with the one before."""


class RecordRefusedError(TrawlError):
    """A store refuses what it was given for what it is, and will the next time; to wait would hold up all others."""


class RecordTooLargeError(RecordRefusedError, KafkaError):
    """A record without a part that could travel by reference is over `kafka.record_bytes_max`, or the topic's limit."""


class BlobNotFoundError(TrawlError, LookupError):
    """A blob reference points at nothing: it was swept or belongs to another store."""


class FetchRefusedError(TrawlError):
    """A single fetch, outside a crawl, brought no page; the text gives the reason."""


class EmbedderError(TrawlError):
    """The embeddings endpoint does not answer, or answers what is no vectors; the caller retries later or stops."""


class EmbedderMismatchError(TrawlError):
    """An index holds vectors of another model or dimension; vectors of two models are never mixed."""


class WorkerDiedError(TrawlError):
    """An extraction worker process ended without an answer, for example killed for its memory."""
