"""A schema registry with Confluent's API: Confluent's own, Apicurio's under /apis/ccompat/v7, Karapace."""

import json
from typing import Any, Final
from urllib.parse import quote

from curl_cffi import requests

from trawl.errors import SchemaRegistryError

_SECONDS_MAX: Final = 10.0
_NOT_COMPATIBLE: Final = 409
_CONTENT: Final = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class SchemaRegistry:
    """Registers schemas and finds them by id."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._session: requests.AsyncSession[requests.Response] | None = None

    async def register(self, subject: str, schema: str) -> int:
        """The id of a schema under a subject; SchemaRegistryError if it is not compatible with the one before."""
        await self._ask("PUT", f"/config/{quote(subject, safe='')}", {"compatibility": "BACKWARD"})
        body = {"schema": schema, "schemaType": "AVRO"}
        answer = await self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        return int(answer["id"])

    async def schema(self, schema_id: int) -> str | None:
        """The schema of an id; None if there is none."""
        answer = await self._ask("GET", f"/schemas/ids/{schema_id}", None, missing_ok=True)
        return None if answer is None else str(answer["schema"])

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, method: str, path: str, body: Any, *, missing_ok: bool = False) -> Any:
        if self._session is None:
            self._session = requests.AsyncSession(timeout=_SECONDS_MAX, trust_env=False)
        try:
            answer = await self._session.request(
                method,  # type: ignore[arg-type]  # one of its literals
                f"{self._url}{path}",
                data=None if body is None else json.dumps(body),
                headers=_CONTENT,
            )
            status, text = answer.status_code, answer.text
            if status == 404 and missing_ok:
                return None
            if 200 <= status < 300:
                return json.loads(text)
        except (requests.exceptions.RequestException, ValueError) as error:
            raise SchemaRegistryError(
                f"the schema registry at {self._url} does not answer: {error}; is it running, and is"
                f" kafka.registry_url right (with its path, for example /apis/ccompat/v7)?"
            ) from error
        hint = "; a new field needs a default, and no field may change its type" if status == _NOT_COMPATIBLE else ""
        raise SchemaRegistryError(f"the schema registry refuses {method} {self._url}{path}: {status} {text:.500}{hint}")
