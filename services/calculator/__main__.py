"""``python -m services.calculator``."""

from services.base import run_service
from services.calculator.app import INFO, build_app

run_service(INFO, build_app, default_port=8101)
