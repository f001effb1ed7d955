# Toolyard in a container: `docker build -t toolyard .`, or `podman build --format docker -t toolyard .`
# docs/containers.md describes how to run it.
# Python 3.13.15 on Debian 13, for every architecture. A newer one: `docker buildx imagetools inspect` the tag.
ARG BASE=docker.io/library/python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285
# Where it is built: the same Python, with venv and pip. The official images of Python have both.
ARG BUILD_BASE=${BASE}

FROM ${BUILD_BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends tini
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements requirements
# --secret id=pip,src=pip.conf names another package index; it does not stay in the image.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv /build/tools \
    && python3 -m venv --without-pip /opt/toolyard \
    && /build/tools/bin/pip install --quiet --require-hashes -r requirements/build.txt \
    && /build/tools/bin/pip --python /opt/toolyard/bin/python install --quiet --require-hashes -r requirements/image.txt
COPY . .
RUN /build/tools/bin/python -m hatchling build --target wheel \
    && /build/tools/bin/pip --python /opt/toolyard/bin/python install --quiet --no-deps dist/*.whl \
    && install --mode 755 container/healthcheck /opt/toolyard/bin/healthcheck

FROM ${BASE}
LABEL org.opencontainers.image.title="Toolyard" \
      org.opencontainers.image.description="Any program that reads stdin and writes stdout becomes a tool for any model." \
      org.opencontainers.image.licenses="Apache-2.0"
RUN echo 'toolyard:x:1000:' >>/etc/group \
    && echo 'toolyard:x:1000:1000::/data:/usr/sbin/nologin' >>/etc/passwd \
    && install --directory --owner 1000 --group 1000 --mode 700 /data \
    && install --directory --owner 1000 --group 1000 /project
COPY --from=build /usr/bin/tini-static /usr/bin/tini
COPY --from=build /opt/toolyard /opt/toolyard
ENV PATH=/opt/toolyard/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    TOOLYARD_HOME=/data
# Numbers, so that an orchestrator can see that it is not root.
USER 1000:1000
WORKDIR /project
VOLUME ["/data", "/project"]
EXPOSE 6005
# Running work has 20 s to finish after this signal: give the container more than that to stop.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 CMD ["healthcheck"]
ENTRYPOINT ["/usr/bin/tini", "--", "toolyard"]
CMD ["serve", "--host", "0.0.0.0", "--allow-remote"]
