# A static binary and the CAs' certificates, nothing else: no shell, no package manager, no root.
#
#   docker build --build-arg REVISION=$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) -t sluicegate:0.1.0 .
#   docker run --rm --read-only --cap-drop ALL --network host -e SLUICEGATE_VECTOR=http://127.0.0.1:6000 sluicegate:0.1.0
#
# With `--network host` the sender's address is kept, and net.core.rmem_max is the host's.
FROM docker.io/library/rust:1.95.0-slim-bookworm AS build
WORKDIR /sluicegate
COPY . .
# The one toolchain, as it is in the image: rust-toolchain.toml would have rustup fetch what only developers need.
ENV RUSTUP_TOOLCHAIN=1.95.0
RUN packaging/static
RUN mkdir -p /image/usr/bin /image/etc/ssl/certs /image/etc/sluicegate /image/var/lib/sluicegate \
    && cp "target/$(uname -m)-unknown-linux-gnu/release/sluicegate" /image/usr/bin/ \
    && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
    && chown 65532:65532 /image/var/lib/sluicegate
# File times are part of an image; with the commit's, the same commit makes the same layers.
ARG SOURCE_DATE_EPOCH=0
RUN find /image -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

FROM scratch
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sluicegate" \
      org.opencontainers.image.description="Drains UDP syslog on every core and streams it to Vector over gRPC" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /image /
USER 65532:65532
# Without capabilities 514 would be out of reach; a Service or a port mapping leads there.
EXPOSE 5514/udp 9615/tcp
ENTRYPOINT ["/usr/bin/sluicegate"]
CMD ["run", "--listen", "[::]:5514"]
