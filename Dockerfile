# syntax=docker/dockerfile:1
# Two images from one file:
#   docker build --target console --build-arg VERSION=1.2.3 -t edge-delivery-console/console .
#   docker build --target edge -t edge-delivery-console/edge .

# --- packages of the console and of the agent, without development ones and without embedded servers
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY console/package.json ./console/
RUN --mount=type=cache,target=/root/.npm \
    npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

# --- pages of the Web UI, with the packages that build them
FROM node:24-bookworm-slim AS pages
WORKDIR /app
COPY package.json package-lock.json ./
COPY console/package.json ./console/
# With optional packages: the bundler's program for this machine is one.
RUN --mount=type=cache,target=/root/.npm \
    npm ci --ignore-scripts --no-audit --no-fund
COPY contract ./contract
COPY docs ./docs
COPY console ./console
RUN npm run build --workspace console

# --- the edge's Caddy with our modules
FROM golang:1.26-bookworm AS caddy
WORKDIR /src
COPY agents/caddy/go.mod agents/caddy/go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY agents/caddy/ ./
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /svc-caddy .

# --- packages from which machines become edge nodes, one per processor
FROM pages AS downloads
ARG NODE_PACKAGES=amd64,arm64
COPY --from=caddy /usr/local/go /usr/local/go
ENV GOPATH=/go \
    PATH=/usr/local/go/bin:$PATH
COPY LICENSE NOTICE ./
COPY bin ./bin
COPY proto ./proto
COPY agents ./agents
COPY runtime/edge-build.ts ./runtime/
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    node bin/package-node.ts --out /downloads --arch "$NODE_PACKAGES"

# --- GeoIP databases of nodes
FROM pages AS geoip
COPY bin/build-geoip.ts ./bin/
COPY bin/lib ./bin/lib
RUN cp -r "$(node bin/build-geoip.ts)" /geoip

# --- console: every role from the same image, chosen by ROLE
FROM node:24-bookworm-slim AS console
WORKDIR /app
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/tmp/node-compile-cache \
    SVC_DOWNLOADS_DIR=/app/downloads \
    SVC_GEOIP_COUNTRY=/app/geoip/country.mmdb \
    SVC_GEOIP_ASN=/app/geoip/asn.mmdb
COPY --from=packages /app/node_modules ./node_modules
COPY package.json moleculer.config.ts LICENSE NOTICE ./
COPY bin/backup.ts bin/console.ts bin/migrate.ts bin/recover.ts bin/reseal.ts bin/restore.ts ./bin/
COPY bin/lib/progress.ts bin/lib/secret-input.ts ./bin/lib/
COPY bin/lib/backup ./bin/lib/backup
COPY contract ./contract
COPY migrations ./migrations
COPY mixins ./mixins
COPY models ./models
COPY pipeline ./pipeline
COPY proto ./proto
COPY runtime ./runtime
COPY services ./services
COPY --from=pages /app/console/dist ./console/dist
COPY --from=downloads /downloads ./downloads
COPY --from=geoip /geoip ./geoip
# What the health check and the settings report.
ARG VERSION=dev
ENV SVC_VERSION=$VERSION
USER 1000:1000
EXPOSE 3000 8443 9464
CMD ["node", "bin/console.ts"]

# --- edge node: agent and Caddy. Kernel bans need NET_ADMIN; ports below 1024 need NET_BIND_SERVICE, all that Caddy keeps.
# The agent's locks need flock (util-linux).
FROM node:24-bookworm-slim AS edge
RUN apt-get update && apt-get install -y --no-install-recommends nftables util-linux && rm -rf /var/lib/apt/lists/*
WORKDIR /app
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/tmp/node-compile-cache \
    SVC_STATE_DIR=/var/lib/svc-edge \
    SVC_GEOIP_COUNTRY=/usr/local/share/svc-edge/geoip/country.mmdb \
    SVC_GEOIP_ASN=/usr/local/share/svc-edge/geoip/asn.mmdb
COPY --from=packages /app/node_modules ./node_modules
COPY --from=caddy /svc-caddy /usr/local/bin/svc-caddy
COPY --from=geoip /geoip /usr/local/share/svc-edge/geoip
COPY package.json LICENSE NOTICE ./
COPY contract/capabilities.ts ./contract/
COPY proto ./proto
COPY agents/kit ./agents/kit
COPY agents/edge ./agents/edge
VOLUME /var/lib/svc-edge
EXPOSE 80
ENTRYPOINT ["node", "agents/edge/main.ts"]
CMD ["supervise"]
