# The same image as that of the main Dockerfile, made from a weft binary that is already built. Run
# in weft's folder:
#
#   docker/stage target/release/weft context/tree target/release/libweft_preload.so
#   cp --parents docker/runtime context
#   docker build -t weft -f docker/package.Dockerfile context
#
# The preload library is optional. The binary must run on Debian 12, so build it on Debian 12.

# From here on, the main Dockerfile has the same lines. CI compares them.
FROM debian:bookworm-slim
COPY docker/runtime /usr/local/lib/weft/runtime
RUN /usr/local/lib/weft/runtime
COPY tree/ /
USER 10001:10001
WORKDIR /var/lib/weft
VOLUME /var/lib/weft
# The check succeeds if a dashboard in the container responds. For commands other than `weft web`,
# disable the check with `docker run --no-healthcheck`.
HEALTHCHECK --interval=10s --start-period=20s CMD ["/usr/local/bin/weft", "web", "--healthy"]
ENTRYPOINT ["/usr/local/bin/weft"]
CMD ["--help"]
