#!/bin/sh
# Stands in the place of an application and starts it, unless a test has left orders on the application's part of the
# volume. Orders that do not end the process are followed by the application.
for orders in /cpa/orders /data/orders; do
	# shellcheck source=/dev/null
	if [ -f "$orders" ]; then . "$orders"; fi
done
exec "$0.real" "$@"
