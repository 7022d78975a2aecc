"""What every HTTP server of the project does alike: one error shape, body limits, request ids, logs, metrics, spans,
web pages, and a server that drains.

The gateway and the tool services share it. It imports nothing else of the project, and the rest of ``toolformer``
imports nothing of it: jobs need no web framework (``docs/decisions/001-code-shared-by-http-servers.md``).
"""

from toolformer.http_api.body import RequestBody
from toolformer.http_api.errors import ApiError, ErrorResponse, documented_errors, error_body, install_error_handlers
from toolformer.http_api.head import HeadAsGet
from toolformer.http_api.limits import BodyLimit
from toolformer.http_api.logs import LogFormat, configure_logging
from toolformer.http_api.metrics import install_metrics
from toolformer.http_api.pages import API_PAGE, Page
from toolformer.http_api.query import known_query
from toolformer.http_api.request_id import REQUEST_ID_HEADER, RequestId, request_id
from toolformer.http_api.serving import listen, serve
from toolformer.http_api.text import UnicodeText
from toolformer.http_api.tracing import RequestSpans, Tracing

__all__ = [
    "API_PAGE",
    "REQUEST_ID_HEADER",
    "ApiError",
    "BodyLimit",
    "ErrorResponse",
    "HeadAsGet",
    "LogFormat",
    "Page",
    "RequestBody",
    "RequestId",
    "RequestSpans",
    "Tracing",
    "UnicodeText",
    "configure_logging",
    "documented_errors",
    "error_body",
    "install_error_handlers",
    "install_metrics",
    "known_query",
    "listen",
    "request_id",
    "serve",
]
