FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends redis-server
USER 999:1000
