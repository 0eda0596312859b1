# Sallyport itself in a container: the daemon as an ordinary user, servers in bubblewrap sandboxes inside it.
#
#   docker build -t sallyport .
#   docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
#     -v "$PWD/sallyport.yaml:/etc/sallyport/sallyport.yaml:ro" -v sallyport-run:/run/sallyport sallyport
#
# The three options are what bubblewrap needs of an engine: user namespaces, mounts in them, a /proc of their own.
# Without them `sallyport doctor` names what is missing, and no server is started. The docker driver needs files that the
# engine sees at the same paths, and a user who may use its socket: from in here `doctor` says what of that is missing.

ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends gcc libc6-dev make \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
# In one step, so that no layer has the packages that only the build needs.
RUN node .ci/for-build.mjs && npm ci && npm run build && npm prune --omit=dev && rm -rf ~/.npm

FROM ${BASE}
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 10001 --home-dir /var/lib/sallyport --shell /usr/sbin/nologin sallyport \
  && install -d -o sallyport -g sallyport -m 0711 /run/sallyport \
  && install -d -o sallyport -g sallyport -m 0700 /var/lib/sallyport
COPY --from=build /build/package.json /build/LICENSE /build/README.md /opt/sallyport/
COPY --from=build /build/node_modules /opt/sallyport/node_modules
COPY --from=build /build/dist /opt/sallyport/dist
COPY --from=build /build/profiles /opt/sallyport/profiles
COPY --from=build /build/sandbox/seccomp /opt/sallyport/sandbox/seccomp
COPY --from=build /build/sandbox/sallyport-stdio /opt/sallyport/sandbox/sallyport-stdio
RUN ln -s /opt/sallyport/dist/cli/main.js /usr/local/bin/sallyport \
  && ln -s /opt/sallyport/sandbox/sallyport-stdio /usr/local/bin/sallyport-stdio
USER sallyport
ENV SALLYPORT_RUNTIME_DIR=/run/sallyport SALLYPORT_STATE_DIR=/var/lib/sallyport
VOLUME /var/lib/sallyport
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["sallyport", "ps"]
ENTRYPOINT ["sallyport"]
CMD ["serve"]
