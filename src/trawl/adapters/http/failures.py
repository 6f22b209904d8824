"""libcurl's errors as typed reasons (pure)."""

import re
from typing import Final

from curl_cffi import CurlECode

RETRYABLE: Final = frozenset(
    {
        "connect_failed",
        "connect_timeout",
        "connection_lost",
        "first_byte_timeout",
        "idle_timeout",
        "protocol_error",
        "proxy_failed",
        "tls_failed",
        "total_timeout",
        "truncated",
    }
)
"""Reasons that another try may not meet; the others would only cost the host the same again."""

SENTENCES: Final = {
    "bad_encoding": "the body is not what its Content-Encoding says",
    "body_too_large": "the body is larger than fetch.body_bytes_max",
    "wire_too_large": "the body is larger on the wire than fetch.wire_bytes_max",
    "decode_ratio": "the body unpacks to more than fetch.decode_ratio_max times its size",
    "headers_too_large": "the header is over fetch.header_bytes_max or fetch.header_count_max",
    "first_byte_timeout": "no answer within fetch.first_byte_seconds_max",
    "idle_timeout": "the answer paused for longer than fetch.idle_seconds_max",
    "total_timeout": "the fetch took longer than fetch.total_seconds_max",
    "connect_timeout": "no connection within fetch.connect_seconds_max",
    "proxy_auth_required": "the proxy wants another name or password",
    "truncated": "the body ended early",
    "peer_address_mismatch": "the connection leads to another address than the one that was checked",
}
"""What happened, for people, where libcurl does not say it."""

_BY_CODE: Final = {
    CurlECode.COULDNT_RESOLVE_PROXY: "proxy_failed",
    CurlECode.COULDNT_RESOLVE_HOST: "connect_failed",
    CurlECode.COULDNT_CONNECT: "connect_failed",
    CurlECode.PROXY: "proxy_failed",
    CurlECode.SSL_CONNECT_ERROR: "tls_failed",
    CurlECode.PEER_FAILED_VERIFICATION: "tls_failed",
    CurlECode.SSL_CERTPROBLEM: "tls_failed",
    CurlECode.SSL_CIPHER: "tls_failed",
    CurlECode.SSL_ISSUER_ERROR: "tls_failed",
    CurlECode.SSL_INVALIDCERTSTATUS: "tls_failed",
    CurlECode.SSL_CACERT_BADFILE: "tls_failed",
    CurlECode.PARTIAL_FILE: "truncated",
    CurlECode.TOO_LARGE: "headers_too_large",
}

_TUNNEL: Final = re.compile(r"CONNECT tunnel failed, response (\d+)")
_SOCKS: Final = re.compile(r"SOCKS5 connection to .* \((\d+)\)")
_SOCKS_UNREACHED: Final = frozenset({"3", "4", "5", "6"})
"""What a SOCKS5 proxy answers if it cannot reach the host (RFC 1928, section 6)."""
_LOST: Final = frozenset({CurlECode.GOT_NOTHING, CurlECode.RECV_ERROR, CurlECode.SEND_ERROR})


def reason_of(
    code: int, message: str, *, connected: bool, answered: bool, timed_out: bool, proxied: bool = False
) -> str:
    """The typed reason of a libcurl error.

    `connected` says whether the request could be sent, `answered` whether the answer had begun, `timed_out` whether
    the whole time was used up.
    """
    if code == CurlECode.OPERATION_TIMEDOUT:
        connecting = not message.startswith("Operation timed out")
        return "connect_timeout" if connecting and not timed_out else "total_timeout"
    of_proxy = _of_proxy(message) if proxied else ""
    if of_proxy or (proxied and code == CurlECode.COULDNT_CONNECT):
        return of_proxy or "proxy_failed"
    if code in _LOST:
        if "oo large" in message:
            return "headers_too_large"
        if not connected:
            return "connect_failed"
        return "truncated" if answered else "connection_lost"
    if code == CurlECode.HTTP2_STREAM and answered:
        return "truncated"
    return _BY_CODE.get(CurlECode(code), "protocol_error") if code in _CODES else "protocol_error"


def _of_proxy(message: str) -> str:
    """What a proxy's refusal means: that it wants a password, that the host cannot be reached, or that it fails."""
    if "rejected by the SOCKS5 server" in message or "No authentication method was acceptable" in message:
        return "proxy_auth_required"
    tunnel, socks = _TUNNEL.search(message), _SOCKS.search(message)
    if tunnel is not None:
        status = tunnel[1]
        unreached = "connect_failed" if status in {"502", "503", "504"} else "proxy_failed"
        return "proxy_auth_required" if status == "407" else unreached
    if socks is not None:
        return "connect_failed" if socks[1] in _SOCKS_UNREACHED else "proxy_failed"
    return "proxy_failed" if "proxy CONNECT" in message else ""


_CODES: Final = frozenset(int(code) for code in CurlECode)


def message_of(error: str) -> str:
    """What libcurl says, without what curl_cffi puts around it."""
    text = error.partition("curl: (")[2].partition(") ")[2] or error
    return text.partition(". See https://curl.se")[0].strip()
