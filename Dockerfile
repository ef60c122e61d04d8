# The operator's image: two static programs, run as user 65532. The pools' start gate is in it, so that pools need no
# image beside their applications' and the operator's.
FROM golang:1.26 AS build
WORKDIR /src
# Modules change less often than code: this layer is kept while go.mod and go.sum stay the same.
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /manager ./cmd/manager && \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /wait-for-isolation ./cmd/wait-for-isolation

FROM gcr.io/distroless/static:nonroot
COPY --from=build /manager /wait-for-isolation /
USER 65532:65532
ENTRYPOINT ["/manager"]
