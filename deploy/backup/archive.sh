#!/bin/sh
# Keeps a finished file of the WAL, whole or not at all. In postgresql.conf:
#   archive_mode = on
#   archive_command = '/opt/deputy/deploy/backup/archive.sh "%p" "%f" /backup/wal'
set -eu
from=$1 name=$2 folder=$3

if [ -e "$folder/$name" ]; then
    cmp -s "$from" "$folder/$name" && exit 0 # kept before; PostgreSQL was not told in time
    echo "archive.sh: $folder/$name is there and differs" >&2
    exit 1
fi
cp "$from" "$folder/$name.part"
sync "$folder/$name.part"
mv "$folder/$name.part" "$folder/$name"
sync "$folder"
