# Trawl's five services in one image; the command chooses which: python -m services.NAME.
# Another Python of 3.11 or newer with venv: --build-arg BASE_IMAGE=…
ARG BASE_IMAGE=python:3.12.12-slim-bookworm

FROM ${BASE_IMAGE} AS build
WORKDIR /build
RUN python3 -m venv /opt/trawl
COPY pyproject.toml requirements-dev.lock README.md LICENSE ./
COPY schemas schemas
COPY src src
RUN /opt/trawl/bin/pip install --no-cache-dir --disable-pip-version-check \
        --constraint requirements-dev.lock ".[services]"

FROM ${BASE_IMAGE}
RUN groupadd --gid 10001 trawl \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin trawl \
    && install --directory --owner=10001 --group=10001 /blobs
COPY --from=build /opt/trawl /opt/trawl
COPY services /app/services
WORKDIR /app
ENV HOME=/tmp \
    PATH=/opt/trawl/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    TRAWL_BLOBS_URL=file:/blobs \
    TRAWL_SERVICE_HOST=0.0.0.0 \
    TRAWL_SERVICE_PORT=8100
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import http.client, os, sys; ask = http.client.HTTPConnection('127.0.0.1', int(os.environ['TRAWL_SERVICE_PORT']), timeout=4); ask.request('GET', '/readyz'); sys.exit(ask.getresponse().status != 200)"]
CMD ["trawl", "--help"]
