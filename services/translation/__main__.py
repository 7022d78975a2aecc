"""``python -m services.translation``."""

from services.base import run_service
from services.translation.app import INFO, build_app

run_service(INFO, build_app, default_port=8105)
