# A small image with weft. Build it with `docker build -t weft .`, then run for example:
#
#   docker run --rm -v "$PWD:/var/lib/weft" weft dissect capture.pcap
#   docker run --rm -v weft:/var/lib/weft weft test builtin --out run
#   docker run --rm -p 7171:7171 -v weft:/var/lib/weft -v "$PWD/tokens:/run/tokens:ro" \
#       weft web --listen 0.0.0.0:7171 --token-file /run/tokens --out run
#   docker run --rm --user 0 --network host weft dissect -i eth0
#
# If the dashboard listens on other addresses than the container's own loopback, it needs tokens.
# The token file has lines `viewer TOKEN` and `operator TOKEN`. User 10001 must be able to read this
# file.
# Only root may capture packets (`dissect -i` and `test --capture`). After `dissect -i` has opened
# the interface, it gives up root's privileges.
#
# docker/package.Dockerfile makes the same image from a weft that is already built.

FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libpcap-dev
WORKDIR /src
COPY . .
# Delete the compiler's files in the same layer, because they take gigabytes.
RUN docker/build /tree && rm -rf target

# From here on, docker/package.Dockerfile has the same lines. CI compares them.
FROM debian:bookworm-slim
COPY docker/runtime /usr/local/lib/weft/runtime
RUN /usr/local/lib/weft/runtime
COPY --from=build /tree/ /
USER 10001:10001
WORKDIR /var/lib/weft
VOLUME /var/lib/weft
# The check succeeds if a dashboard in the container responds. For commands other than `weft web`,
# disable the check with `docker run --no-healthcheck`.
HEALTHCHECK --interval=10s --start-period=20s CMD ["/usr/local/bin/weft", "web", "--healthy"]
ENTRYPOINT ["/usr/local/bin/weft"]
CMD ["--help"]
