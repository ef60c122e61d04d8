# The operator's image: two static programs, run as user 65532. The pools' start gate is in it, so that pools need no
# image beside their applications' and the operator's.
# The full version: it is part of the programs' bytes. hack/verify-versions.sh compares it with that of the workflows.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
# Modules change less often than code: this layer is kept while go.mod and go.sum stay the same.
COPY go.mod go.sum ./
RUN go mod download
COPY hack hack
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
RUN go build -C hack/tools -o /licences ./licences && \
    mkdir /texts && /licences --texts ./cmd/manager ./cmd/wait-for-isolation >/texts/THIRD_PARTY.txt
ARG VERSION=dev
# Set by the builder for each platform.
ARG TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH hack/build.sh "$VERSION" /programs

FROM gcr.io/distroless/static:nonroot
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="SubRelay Operator" \
      org.opencontainers.image.source="https://github.com/example-org/subrelay-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /programs/ /
COPY --from=build /texts/ /licenses/
COPY LICENSE /licenses/
USER 65532:65532
ENTRYPOINT ["/manager"]
