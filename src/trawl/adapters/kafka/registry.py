"""A schema registry with Confluent's API: Confluent's own, Apicurio's under /apis/ccompat/v7, Karapace."""

import json
from collections.abc import Collection
from typing import Any, Final
from urllib.parse import quote

from curl_cffi import requests

from trawl.adapters.masked import masked
from trawl.errors import SchemaRegistryError

_SECONDS_MAX: Final = 10.0
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
"""A longer answer is none of a schema registry."""
_MISSING: Final = 404
_CONFLICT: Final = 409
_CONTENT: Final = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
_SHOWN_CHARS: Final = 500


class SchemaRegistry:
    """Registers schemas and finds them by id. A name and password for basic authentication may stand in the URL."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._where = masked(self._url)
        self._session: requests.AsyncSession[requests.Response] | None = None

    async def register(self, subject: str, schema: str) -> int:
        """The id of a schema under a subject; SchemaRegistryError if it is not compatible with the one before."""
        await self._set_rule(f"/config/{quote(subject, safe='')}")
        body = {"schema": schema, "schemaType": "AVRO"}
        answer = await self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        found = answer.get("id")
        if not isinstance(found, int) or not 0 <= found < 2**32:
            raise self._strange("POST", f"/subjects/{subject}/versions", answer)
        return found

    async def _set_rule(self, path: str) -> None:
        """Have a subject take only what is compatible; a conflict means that another process has just done the same."""
        await self._ask("PUT", path, {"compatibility": "BACKWARD"}, answers={_CONFLICT})

    async def schema(self, schema_id: int) -> str | None:
        """The schema of an id; None if there is none."""
        answer = await self._ask("GET", f"/schemas/ids/{schema_id}", None, answers={_MISSING})
        if answer is None:
            return None
        if not isinstance(answer.get("schema"), str):
            raise self._strange("GET", f"/schemas/ids/{schema_id}", answer)
        return str(answer["schema"])

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, method: str, path: str, body: Any, *, answers: Collection[int] = ()) -> Any:
        """The object in an answer; None for a refusal whose status is an answer. Raises SchemaRegistryError."""
        try:
            status, text = await self._answer(method, path, body)
            answer = json.loads(text) if 200 <= status < 300 else None
        except (requests.exceptions.RequestException, ValueError, RecursionError) as error:
            raise SchemaRegistryError(
                f"the schema registry at {self._where} does not answer: {error}; is it running, and is"
                f" kafka.registry_url right (with its path, for example /apis/ccompat/v7)?"
            ) from error
        if status in answers:
            return None
        if not 200 <= status < 300:
            raise self._refusal(method, path, status, text)
        if not isinstance(answer, dict):
            raise self._strange(method, path, answer)
        return answer

    async def _answer(self, method: str, path: str, body: Any) -> tuple[int, str]:
        if self._session is None:
            self._session = requests.AsyncSession(timeout=_SECONDS_MAX, trust_env=False)
        answer = await self._session.request(
            method,  # type: ignore[arg-type]  # one of its literals
            f"{self._url}{path}",
            data=None if body is None else json.dumps(body),
            headers=_CONTENT,
            stream=True,
        )
        try:
            found = bytearray()
            async for part in answer.aiter_content():  # type: ignore[no-untyped-call]
                found += part
                if len(found) > ANSWER_BYTES_MAX:
                    raise ValueError(f"its answer to {method} {path} is longer than {ANSWER_BYTES_MAX} bytes")
        finally:
            await answer.aclose()  # type: ignore[no-untyped-call]
        return answer.status_code, found.decode("utf-8", "replace")

    def _refusal(self, method: str, path: str, status: int, text: str) -> SchemaRegistryError:
        hint = ""
        if status == _CONFLICT:
            hint = (
                "; the schema here is not compatible with the newest one there (BACKWARD): a newer Trawl, or another"
                " program, has registered it. Run the newest version everywhere, or delete that version of the subject"
            )
        elif status in {_MISSING, 405}:
            hint = "; is kafka.registry_url right (with its path, for example /apis/ccompat/v7)?"
        elif status in {401, 403}:
            hint = "; name and password may stand in kafka.registry_url, as http://NAME:PASSWORD@HOST"
        return SchemaRegistryError(
            f"the schema registry refuses {method} {self._where}{path}: {status} {text[:_SHOWN_CHARS]}{hint}"
        )

    def _strange(self, method: str, path: str, answer: Any) -> SchemaRegistryError:
        return SchemaRegistryError(
            f"what answers {method} {self._where}{path} is no schema registry: {str(answer)[:_SHOWN_CHARS]}; is"
            f" kafka.registry_url right (with its path, for example /apis/ccompat/v7)?"
        )
