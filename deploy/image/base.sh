#!/bin/sh
# Makes an image with Python of Debian's packages, for machines that reach no registry of images: base.sh NAME
# Then: make image PYTHON_IMAGE=NAME. Needs debootstrap, root, and podman (or ENGINE=docker).
set -eu
[ $# -eq 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
name=$1 engine=${ENGINE:-podman} suite=${SUITE:-bookworm} mirror=${MIRROR:-http://deb.debian.org/debian}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$folder" "$mirror" >&2
ln -sf python3 "$folder/usr/bin/python"
rm -rf "$folder"/var/cache/apt/* "$folder"/var/lib/apt/lists/* "$folder"/var/log/*
tar -C "$folder" -c . | "$engine" import - "$name"
