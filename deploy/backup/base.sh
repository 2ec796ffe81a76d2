#!/bin/sh
# A copy of a running PostgreSQL, checked: base.sh FOLDER [pg_basebackup's own options: -h HOST -U USER …]
# Run it every day; what is between two copies is in the WAL (archive.sh).
set -eu
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
folder=$1
shift

pg_basebackup --pgdata="$folder" --checkpoint=fast --wal-method=stream --no-password "$@"
pg_verifybackup --quiet "$folder"
