# What the scripts of this folder begin with: the settings, and which machine this is (the first argument).
set -eu
project=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=deploy/three-machines/machines.conf
. "${MACHINES_CONF:-/etc/deputy/machines.conf}"
: "${SUPERUSER_PASSWORD:?is empty in machines.conf}" "${REPLICATION_PASSWORD:?is empty in machines.conf}"
: "${DEPUTY_PASSWORD:?is empty in machines.conf}" "${SECRET_KEY:?is empty in machines.conf}"

name=${1:-}
case $name in
m1) address=$M1 ;;
m2) address=$M2 ;;
m3) address=$M3 ;;
*) echo "$0: which machine is this: m1, m2 or m3?" >&2; exit 2 ;;
esac
home=$FOLDER/$name
hosts=$M1:5432,$M2:5432,$M3:5432

# Run a program as a user of its own, in a folder that only this user may enter.
exec_as() {
    user=$1
    install -d -m 0755 "$FOLDER" "$home"
    install -d -m 0700 -o "$user" -g "$user" "$home/$2"
    shift 2
    exec setpriv --reuid="$user" --regid="$user" --init-groups "$@"
}
