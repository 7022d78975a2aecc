FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends redis-server
RUN install -d -o 999 -g 1000 /data
USER 999:1000
