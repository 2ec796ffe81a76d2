#!/bin/sh
# What each machine needs beside Deputy, as root: Debian's packages. What they would start by themselves is
# stopped and kept from starting: the other scripts of this folder run it.
set -eu

PACKAGES="postgresql-15 patroni etcd-server"
UNITS="postgresql etcd patroni"

# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $PACKAGES

if [ -d /run/systemd/system ]; then
    # shellcheck disable=SC2086
    systemctl mask --now $UNITS
fi
