"""What every HTTP server of the project does alike: one error shape, body limits, metrics, and a server that drains.

The gateway and the tool services share this room. It knows the web framework and nothing else of the project, so that
``toolformer`` stays free of one (``docs/decisions/001-http-api-room.md``).
"""

from http_api.errors import ApiError, ErrorResponse, documented_errors, error_body, install_error_handlers
from http_api.limits import BodyLimit
from http_api.metrics import install_metrics
from http_api.serving import configure_logging, serve
from http_api.text import UnicodeText

__all__ = [
    "ApiError",
    "BodyLimit",
    "ErrorResponse",
    "UnicodeText",
    "configure_logging",
    "documented_errors",
    "error_body",
    "install_error_handlers",
    "install_metrics",
    "serve",
]
