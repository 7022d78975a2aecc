"""What every HTTP server of the project does alike: one error shape, body limits, request ids, logs, metrics, spans,
web pages, and a server that drains.

The gateway and the tool services share this room. It knows the web framework and nothing else of the project, so that
``toolformer`` stays free of one (``docs/decisions/001-code-shared-by-http-servers.md``).
"""

from http_api.body import RequestBody
from http_api.errors import ApiError, ErrorResponse, documented_errors, error_body, install_error_handlers
from http_api.head import HeadAsGet
from http_api.limits import BodyLimit
from http_api.logs import LogFormat, configure_logging
from http_api.metrics import install_metrics
from http_api.pages import API_PAGE, Page
from http_api.query import known_query
from http_api.request_id import REQUEST_ID_HEADER, RequestId, request_id
from http_api.serving import listen, serve
from http_api.text import UnicodeText
from http_api.tracing import RequestSpans, Tracing

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
