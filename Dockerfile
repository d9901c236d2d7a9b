FROM python:3.12-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1

# The locked dependencies first: they change less often than the code, and their layer is reused.
WORKDIR /opt/costsvc
COPY requirements.lock ./
RUN pip install --require-hashes -r requirements.lock

COPY pyproject.toml LICENSE ./
COPY costsvc costsvc
COPY migrations migrations
COPY catalog catalog
RUN pip install --no-deps --no-build-isolation .

# Nothing is written below the root but /tmp, so that may be read-only; libraries keep their caches there.
ENV PYTHONDONTWRITEBYTECODE=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    NUMBA_CACHE_DIR=/tmp/numba \
    NUMBA_CPU_NAME=generic

# The default database is a file in the working directory; mount a volume there to keep it.
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/costsvc costsvc
WORKDIR /var/lib/costsvc

# The search is compiled once, for every processor of this architecture, and copied to where Numba may write.
RUN NUMBA_CACHE_DIR=/opt/costsvc/compiled python -c 'from costsvc.engine import ready; ready.make_ready()'
ENTRYPOINT ["sh", "-c", "cp -R /opt/costsvc/compiled/. \"$NUMBA_CACHE_DIR\"; exec \"$0\" \"$@\""]
USER costsvc

EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=3)"]
CMD ["costsvc", "serve", "--host", "0.0.0.0", "--port", "8000"]
