#!/usr/bin/env bash
# Installs what the bench `peers` compares with, and starts none of it (Debian and its relatives).
set -euo pipefail
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  # the bench starts its own: the packages are not to start any
  trap '"${root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${root[@]}" install -m 755 /dev/stdin "$policy"
fi
"${root[@]}" apt-get update
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y --no-install-recommends postgresql pgbouncer pgpool2
