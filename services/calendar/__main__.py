"""``python -m services.calendar``."""

from services.base import run_service
from services.calendar.app import INFO, build_app

run_service(INFO, build_app, default_port=8102)
