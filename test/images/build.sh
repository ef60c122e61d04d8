#!/bin/sh
# Builds the stand-in applications and packs each into an image archive
# bin/images/NAME.tar with the tag registry.example.invalid/subrelay-standin/NAME:dev.
# The images have the shape of the real ones: same paths, working folders,
# commands and environment, no USER. Needs bin/lab (make it with "go build -C lab -o ../bin/lab .").
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
sources=$root/test/images
out=$root/bin/images
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

if ! [ -x "$root/bin/lab" ]; then
	echo "build.sh: $root/bin/lab is missing: build it with go build -C lab -o ../bin/lab ." >&2
	exit 1
fi

# build NAME: compiles a static binary to $out/NAME.
build() {
	CGO_ENABLED=0 go build -C "$sources" -trimpath -buildvcs=false -ldflags='-s -w' -o "$out/$1" "./$1"
}

# pack NAME FLAGS...: makes $out/NAME.tar; the same files make the same archive.
pack() {
	name=$1
	shift
	"$root/bin/lab" image --tag "registry.example.invalid/subrelay-standin/$name:dev" \
		--output "$out/$name.tar" --env "PATH=$path" "$@"
}

mkdir -p "$out"

# The prober lies in a pool's own image, so that tests can look at traffic from inside of a pool.
build cpa
build prober
pack cpa --busybox --workdir /CLIProxyAPI \
	--file "$out/cpa:/CLIProxyAPI/CLIProxyAPI:0755" --file "$out/prober:/bin/prober:0755" --cmd ./CLIProxyAPI

build cpa-manager
pack cpa-manager --busybox --workdir /app \
	--file "$out/cpa-manager:/usr/local/bin/cpa-manager-plus:0755" --entrypoint cpa-manager-plus \
	--env HTTP_ADDR=0.0.0.0:18317 --env USAGE_DATA_DIR=/data --env USAGE_DB_PATH=/data/usage.sqlite

build mihomo
pack mihomo --file "$out/mihomo:/mihomo:0755" --entrypoint /mihomo

# Envoy Gateway runs its proxies by the names of the programs, without a path.
build edge
pack edge --file "$out/edge:/usr/local/bin/envoy:0755" --file "$out/edge:/usr/local/bin/envoy-gateway:0755" --entrypoint envoy
