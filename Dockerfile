# Tidemark: one container for each workspace (docs/docker.md).
#
#   docker build -t tidemark .
#   docker buildx build --platform linux/amd64,linux/arm64 -t tidemark .
#
# Everything is built on the machine that builds, whatever the platform of the image: it is JavaScript, and the one native
# module (SQLite) comes ready for both. The last stage runs no command, so that nothing is emulated.
#
# For reproducible builds: both images by digest (config/release/pins.json), SOURCE_DATE_EPOCH set, and
#   --output type=...,rewrite-timestamp=true
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

FROM --platform=${BUILDPLATFORM:-linux/amd64} ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json README.md CHANGELOG.md ./
COPY config/build.mjs config/outside.mjs ./config/
COPY config/image ./config/image
COPY src ./src
RUN npm run build
# The files that run: no development dependency, no second Node (the image has one), no SQLite of another platform.
# Without a default, which BuildKit would take for every platform; builders that do not set it build for amd64.
ARG TARGETARCH
RUN npm ci --omit=dev --omit=optional \
 && node config/image/assemble.mjs /out "${TARGETARCH:-amd64}"

FROM ${NODE_IMAGE} AS node

# Smaller than Node's own image, because an installed program needs neither npm nor yarn.
FROM ${BASE_IMAGE}
ARG VERSION=1.0.0-rc.1
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="Tidemark" \
      org.opencontainers.image.description="Keeps a complete and fresh copy of a device-monitoring workspace in the time-series database of its owner" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim"
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/LICENSE /usr/share/doc/node/LICENSE
COPY --from=build /out/app /app
# /data belongs to the group of root, which may write there: so any user without a group (--user 4242, OpenShift) can write there too.
COPY --from=build --chown=1000:0 /out/root /
# SQLite's temporary files go to /data, because no other directory may be writable. MALLOC_* limits the freed memory that glibc keeps.
ENV NODE_ENV=production \
    PATH=/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TIDEMARK_DATA_DIR=/data \
    TIDEMARK_LISTEN=0.0.0.0:9464 \
    SQLITE_TMPDIR=/data \
    MALLOC_ARENA_MAX=1 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    MALLOC_TRIM_THRESHOLD_=131072
WORKDIR /app
USER 1000:1000
VOLUME /data
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 CMD ["tidemark", "--health"]
ENTRYPOINT ["tidemark"]
