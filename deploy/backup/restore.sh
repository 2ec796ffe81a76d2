#!/bin/sh
# Makes a data folder of a base backup and the archived WAL: restore.sh BASE WAL DATA [TIME]
# TIME, such as '2026-05-01 12:00:00+00', is the point to go back to; without it, all of the WAL is replayed.
# Run it as PostgreSQL's user, with Deputy's clusters stopped. Then start PostgreSQL on DATA.
set -eu
[ $# -ge 3 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
base=$1 wal=$2 data=$3 time=${4:-}

fail() { echo "restore.sh: $1" >&2; exit 1; }
[ -e "$base/backup_manifest" ] || fail "$base is no base backup"
[ -d "$wal" ] || fail "$wal is no folder"
[ -z "$(ls -A "$data" 2>/dev/null)" ] || fail "$data is not empty"
case $wal$time in *\'*) fail "no ' in a folder's name or a time, please" ;; esac

mkdir -p "$data"
chmod 0700 "$data"
cp -a "$base/." "$data/"
rm -f "$data/postmaster.pid"
{
    echo "restore_command = 'cp \"$wal/%f\" \"%p\"'"
    echo "recovery_target_action = 'promote'"
    [ -z "$time" ] || echo "recovery_target_time = '$time'"
} >>"$data/postgresql.auto.conf"
touch "$data/recovery.signal"
