# weft in a small image. `docker build -t weft .`, then for example
#   docker run --rm -v "$PWD:/var/lib/weft" weft dissect capture.pcap
#   docker run --rm -v weft:/var/lib/weft weft test builtin --out run
#   docker run --rm --network host -v weft:/var/lib/weft weft web --listen 127.0.0.1:8080 --out run
# The dashboard listens on loopback only, hence the host's network.
# It reads captures and takes none (`weft dissect -i`): for that, run weft on the host itself.
# The steps are scripts, which .ci/image runs outside Docker too.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN docker/build /tree

FROM debian:bookworm-slim
COPY docker/runtime /usr/local/lib/weft/runtime
RUN /usr/local/lib/weft/runtime
COPY --from=build /tree/ /
USER 10001:10001
WORKDIR /var/lib/weft
VOLUME /var/lib/weft
ENTRYPOINT ["/usr/local/bin/weft"]
CMD ["--help"]
