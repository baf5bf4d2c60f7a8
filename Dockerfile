# weft in a small image. `docker build -t weft .`, then for example
#   docker run --rm -v "$PWD:/var/lib/weft" weft dissect capture.pcap
#   docker run --rm -v weft:/var/lib/weft weft test builtin --out run
#   docker run --rm -p 7171:7171 -v weft:/var/lib/weft weft web --listen 0.0.0.0:7171 --token-file tokens --out run
# Beyond loopback, the container's own, the dashboard needs tokens: a file with lines `viewer TOKEN` and `operator TOKEN`.
#   docker run --rm --user 0 --network host weft dissect -i eth0
# Only root may capture (`dissect -i`, which gives that up once the interface is open, and `test --capture`).
# The steps are scripts, which .ci/image runs outside Docker too.

FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libpcap-dev
WORKDIR /src
COPY . .
RUN docker/build /tree

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends libpcap0.8 && rm -rf /var/lib/apt/lists/*
COPY docker/runtime /usr/local/lib/weft/runtime
RUN /usr/local/lib/weft/runtime
COPY --from=build /tree/ /
USER 10001:10001
WORKDIR /var/lib/weft
VOLUME /var/lib/weft
# Whether a dashboard in it answers; for anything else than `weft web`, docker run --no-healthcheck.
HEALTHCHECK --start-period=20s CMD ["/usr/local/bin/weft", "web", "--healthy"]
ENTRYPOINT ["/usr/local/bin/weft"]
CMD ["--help"]
