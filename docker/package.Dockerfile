# The image of the main Dockerfile, from a weft that is already built. In weft's folder:
#
#   docker/stage target/release/weft context/tree target/release/libweft_preload.so
#   cp --parents docker/runtime context
#   docker build -t weft -f docker/package.Dockerfile context
#
# The preload library is optional. The binary must run on Debian 12: build it there.

# From here on, the main Dockerfile has the same lines; CI compares them.
FROM debian:bookworm-slim
COPY docker/runtime /usr/local/lib/weft/runtime
RUN /usr/local/lib/weft/runtime
COPY tree/ /
USER 10001:10001
WORKDIR /var/lib/weft
VOLUME /var/lib/weft
# Succeeds when a dashboard in the container responds. For other commands than `weft web`, disable it
# with docker run --no-healthcheck.
HEALTHCHECK --interval=10s --start-period=20s CMD ["/usr/local/bin/weft", "web", "--healthy"]
ENTRYPOINT ["/usr/local/bin/weft"]
CMD ["--help"]
