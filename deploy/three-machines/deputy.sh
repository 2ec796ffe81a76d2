#!/bin/sh
# Deputy on one machine: deputy.sh m1 web | deputy.sh m1 cluster | deputy.sh m1 manage migrate
. "$(dirname -- "$0")/common.sh"
[ $# -ge 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
what=$2
shift 2

install -d -m 0755 "$FOLDER" "$home"
install -d -m 0700 "$home/deputy"
export DEPUTY_HOME="$home/deputy" SECRET_KEY="$SECRET_KEY" SYNCHRONOUS_STANDBY="$SYNCHRONOUS"
# the last three: the kernel gives up a machine that does not answer for three seconds, before another leads
options="target_session_attrs=read-write&tcp_user_timeout=3000&keepalives_idle=1&keepalives_interval=1"
export DATABASE_URL="postgresql://deputy:$DEPUTY_PASSWORD@$hosts/deputy?$options"
if [ "${LISTS_FROM_STANDBY:-no}" = yes ]; then
    options="target_session_attrs=prefer-standby&load_balance_hosts=random&tcp_user_timeout=3000"
    export DATABASE_REPLICA_URL="postgresql://deputy:$DEPUTY_PASSWORD@$hosts/deputy?$options"
fi
export HOST="$address" PORT=8000
cd "$project"
case $what in
web) exec .venv/bin/gunicorn config.asgi:application --bind "$address:8000" --log-level warning ;;
cluster) exec .venv/bin/python manage.py cluster ;;
manage) exec .venv/bin/python manage.py "$@" ;;
*) echo "deputy.sh: web, cluster or manage?" >&2; exit 2 ;;
esac
