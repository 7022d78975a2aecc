"""``python -m services.question_answering``."""

from services.base import run_service
from services.question_answering.app import INFO, build_app

run_service(INFO, build_app, default_port=8104)
