"""``python -m services.wiki_search``."""

from services.base import run_service
from services.wiki_search.app import INFO, build_app

run_service(INFO, build_app, default_port=8103)
